--
-- PostgreSQL database dump
--

\restrict 17xWt4p1GGC0CEYTJdJyzEoYT7ZtejCcuyrIf7W3TBea1PhblFnOq6r83kskjbm

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: kept; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA kept;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: lab_asserted_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_asserted_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_chosen_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_chosen_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_gap_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_gap_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_lost; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_lost (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text
);


--
-- Name: lab_lost_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_lost_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_masked; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_masked (
    id text,
    name text,
    amount numeric(9,2),
    mail text
);


--
-- Name: lab_masked_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_masked_history (
    id text,
    name text,
    amount numeric(9,2),
    mail text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_net_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_net_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_plain; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_plain (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text
);


--
-- Name: lab_plain_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_plain_history (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _op text,
    _lsn text COLLATE pg_catalog."C",
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    _changed text[],
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: lab_plain_transactions; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_plain_transactions (
    _lsn text COLLATE pg_catalog."C",
    _commit_ts timestamp without time zone,
    _commit_ts_utc timestamp with time zone,
    schema text,
    "table" text,
    events bigint,
    inserted bigint,
    updated bigint,
    deleted bigint,
    _tran_id text
);


--
-- Name: lab_soft; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_soft (
    id integer,
    name text,
    note text,
    amount numeric(9,2),
    seen timestamp without time zone,
    email text,
    _deleted_at timestamp without time zone
);


--
-- Name: lab_wide_history; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.lab_wide_history (
    type text,
    schema text,
    "table" text,
    lsn text,
    ts timestamp without time zone,
    before_id integer,
    before_name text,
    before_note text,
    before_amount numeric(9,2),
    before_seen timestamp without time zone,
    before_email text,
    after_id integer,
    after_name text,
    after_note text,
    after_amount numeric(9,2),
    after_seen timestamp without time zone,
    after_email text,
    _command_id integer,
    _seqval text,
    _seq bigint,
    _commit_ts_utc timestamp with time zone,
    _unknown text[],
    _tran_id text,
    _healed boolean
);


--
-- Name: mssql_cdc_sinks; Type: TABLE; Schema: kept; Owner: -
--

CREATE TABLE kept.mssql_cdc_sinks (
    sink text NOT NULL,
    version bigint NOT NULL,
    marker jsonb,
    table_oid oid NOT NULL,
    is_empty boolean NOT NULL,
    attempt text,
    committed_at timestamp with time zone,
    schemas jsonb
);


--
-- Data for Name: lab_asserted_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_asserted_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_asserted_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'B', '0x0000002D00000250000A', 1, '0x0000002D000002500002', 1, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{name,amount}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (1, 'ä 4818640', NULL, 0.25, '2026-01-01 10:00:00', 'm1@example.org', 'U', '0x0000002D00000250000A', 1, '0x0000002D000002500002', 2, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{name,amount}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (1, 'ä 4818640', NULL, 0.25, '2026-01-01 10:00:00', 'm1@example.org', 'B', '0x0000002D00000900000A', 1, '0x0000002D000009000002', 1, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{name,amount}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (1, 'ä 743611', NULL, -3.75, '2026-01-01 10:00:00', 'm1@example.org', 'U', '0x0000002D00000900000A', 1, '0x0000002D000009000002', 2, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{name,amount}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'D', '0x0000002D00000250000A', 3, '0x0000002D000002500006', 5, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000002600003', 1, '0x0000002D000002600002', 1, '2026-11-24 21:18:20.82', '2026-11-24 16:18:20.82-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000426', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000005C0000A', 1, '0x0000002D000005C00002', 1, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{name,amount}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'ä 7412639', NULL, 0.00, NULL, 'b@example.org', 'U', '0x0000002D000005C0000A', 1, '0x0000002D000005C00002', 2, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{name,amount}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'ä 7412639', NULL, 0.00, NULL, 'b@example.org', 'D', '0x0000002D00000900000A', 3, '0x0000002D000009000006', 5, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (2, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000009100003', 1, '0x0000002D000009100002', 1, '2026-11-24 21:18:25.167', '2026-11-24 16:18:25.167-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004FC', false);
INSERT INTO kept.lab_asserted_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'D', '0x0000002D000006D8000A', 3, '0x0000002D000006D80006', 5, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000006E80003', 1, '0x0000002D000006E80002', 1, '2026-11-24 21:18:23.983', '2026-11-24 16:18:23.983-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004B7', false);
INSERT INTO kept.lab_asserted_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000007E0000A', 1, '0x0000002D000007E00002', 1, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{name,amount}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (3, 'ä 4305184', NULL, 0.00, NULL, 'b@example.org', 'U', '0x0000002D000007E0000A', 1, '0x0000002D000007E00002', 2, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{name,amount}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'B', '0x0000002D00000388000A', 2, '0x0000002D000003880004', 3, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{note,email}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (4, 'name 4', '5281760', 4.25, '2026-01-04 10:00:00', NULL, 'U', '0x0000002D00000388000A', 2, '0x0000002D000003880004', 4, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{note,email}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'B', '0x0000002D00000250000A', 2, '0x0000002D000002500004', 3, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{note,email}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'name 5', '4818640', 5.25, '2026-01-05 10:00:00', NULL, 'U', '0x0000002D00000250000A', 2, '0x0000002D000002500004', 4, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{note,email}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'name 5', '4818640', 5.25, '2026-01-05 10:00:00', NULL, 'D', '0x0000002D000005C0000A', 3, '0x0000002D000005C00006', 5, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000005D00003', 1, '0x0000002D000005D00002', 1, '2026-11-24 21:18:23.52', '2026-11-24 16:18:23.52-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000494', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000006D8000A', 2, '0x0000002D000006D80004', 3, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{note,email}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'back', '4546731', 2.00, NULL, NULL, 'U', '0x0000002D000006D8000A', 2, '0x0000002D000006D80004', 4, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{note,email}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'back', '4546731', 2.00, NULL, NULL, 'D', '0x0000002D000007E0000A', 3, '0x0000002D000007E00006', 5, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000007F00003', 1, '0x0000002D000007F00002', 1, '2026-11-24 21:18:24.537', '2026-11-24 16:18:24.537-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D8', false);
INSERT INTO kept.lab_asserted_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'D', '0x0000002D00000130000A', 3, '0x0000002D000001300006', 5, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000001400003', 1, '0x0000002D000001400002', 1, '2026-11-24 21:18:20.227', '2026-11-24 16:18:20.227-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000402', false);
INSERT INTO kept.lab_asserted_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D00000388000A', 1, '0x0000002D000003880002', 1, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{name,amount}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (6, 'ä 5281760', NULL, -2.00, NULL, 'b@example.org', 'U', '0x0000002D00000388000A', 1, '0x0000002D000003880002', 2, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{name,amount}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'B', '0x0000002D000005C0000A', 2, '0x0000002D000005C00004', 3, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{note,email}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (7, 'name 7', '7412639', 7.25, '2026-01-07 10:00:00', NULL, 'U', '0x0000002D000005C0000A', 2, '0x0000002D000005C00004', 4, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{note,email}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D00000130000A', 1, '0x0000002D000001300002', 1, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{name,amount}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'ä 7559636', NULL, 4.25, '2026-01-08 10:00:00', 'm8@example.org', 'U', '0x0000002D00000130000A', 1, '0x0000002D000001300002', 2, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{name,amount}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'ä 7559636', NULL, 4.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D000004B0000A', 2, '0x0000002D000004B00004', 3, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{note,email}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'ä 7559636', '2624902', 4.25, '2026-01-08 10:00:00', NULL, 'U', '0x0000002D000004B0000A', 2, '0x0000002D000004B00004', 4, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{note,email}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'ä 7559636', '2624902', 4.25, '2026-01-08 10:00:00', NULL, 'B', '0x0000002D000006D8000A', 1, '0x0000002D000006D80002', 1, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{name,amount}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (8, 'ä 4546731', '2624902', 0.25, '2026-01-08 10:00:00', NULL, 'U', '0x0000002D000006D8000A', 1, '0x0000002D000006D80002', 2, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{name,amount}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'B', '0x0000002D000004B0000A', 1, '0x0000002D000004B00002', 1, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{name,amount}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (9, 'ä 2624902', '99999999999999999999999999999999999999999999999999', 6.25, '2026-01-09 10:00:00', 'm9@example.org', 'U', '0x0000002D000004B0000A', 1, '0x0000002D000004B00002', 2, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{name,amount}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (9, 'ä 2624902', '99999999999999999999999999999999999999999999999999', 6.25, '2026-01-09 10:00:00', 'm9@example.org', 'B', '0x0000002D000007E0000A', 2, '0x0000002D000007E00004', 3, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{note,email}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (9, 'ä 2624902', '4305184', 6.25, '2026-01-09 10:00:00', NULL, 'U', '0x0000002D000007E0000A', 2, '0x0000002D000007E00004', 4, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{note,email}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'B', '0x0000002D00000130000A', 2, '0x0000002D000001300004', 3, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{note,email}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'name 10', '7559636', 10.25, '2026-01-10 10:00:00', NULL, 'U', '0x0000002D00000130000A', 2, '0x0000002D000001300004', 4, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{note,email}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'name 10', '7559636', 10.25, '2026-01-10 10:00:00', NULL, 'D', '0x0000002D00000388000A', 3, '0x0000002D000003880006', 5, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000003980003', 1, '0x0000002D000003980002', 1, '2026-11-24 21:18:21.807', '2026-11-24 16:18:21.807-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000044D', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'D', '0x0000002D000004B0000A', 3, '0x0000002D000004B00006', 5, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000004C00003', 1, '0x0000002D000004C00002', 1, '2026-11-24 21:18:22.797', '2026-11-24 16:18:22.797-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000472', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D00000900000A', 2, '0x0000002D000009000004', 3, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{note,email}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (10, 'back', '743611', 2.00, NULL, NULL, 'U', '0x0000002D00000900000A', 2, '0x0000002D000009000004', 4, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{note,email}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (743611, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000900000A', 4, '0x0000002D000009000007', 6, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (743611, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000900000A', 5, '0x0000002D000009000008', 7, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{note,amount}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (743611, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000900000A', 5, '0x0000002D000009000008', 8, '2026-11-24 21:18:25.16', '2026-11-24 16:18:25.16-05', '{note,amount}', '{}', '0x0000000004FA', false);
INSERT INTO kept.lab_asserted_history VALUES (743611, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000009080004', 1, '0x0000002D000009080002', 1, '2026-11-24 21:18:25.163', '2026-11-24 16:18:25.163-05', '{amount}', '{}', '0x0000000004FB', false);
INSERT INTO kept.lab_asserted_history VALUES (743611, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000009080004', 1, '0x0000002D000009080002', 2, '2026-11-24 21:18:25.163', '2026-11-24 16:18:25.163-05', '{amount}', '{}', '0x0000000004FB', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000004B0000A', 4, '0x0000002D000004B00007', 6, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000004B0000A', 5, '0x0000002D000004B00008', 7, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{note,amount}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000004B0000A', 5, '0x0000002D000004B00008', 8, '2026-11-24 21:18:22.77', '2026-11-24 16:18:22.77-05', '{note,amount}', '{}', '0x000000000470', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000004B80004', 1, '0x0000002D000004B80002', 1, '2026-11-24 21:18:22.777', '2026-11-24 16:18:22.777-05', '{amount}', '{}', '0x000000000471', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000004B80004', 1, '0x0000002D000004B80002', 2, '2026-11-24 21:18:22.777', '2026-11-24 16:18:22.777-05', '{amount}', '{}', '0x000000000471', false);
INSERT INTO kept.lab_asserted_history VALUES (2624902, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000004C80004', 1, '0x0000002D000004C80002', 1, '2026-11-24 21:18:22.8', '2026-11-24 16:18:22.8-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000473', false);
INSERT INTO kept.lab_asserted_history VALUES (2624903, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000004C80004', 2, '0x0000002D000004C80003', 2, '2026-11-24 21:18:22.8', '2026-11-24 16:18:22.8-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000473', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007E0000A', 4, '0x0000002D000007E00007', 6, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007E0000A', 5, '0x0000002D000007E00008', 7, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{note,amount}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007E0000A', 5, '0x0000002D000007E00008', 8, '2026-11-24 21:18:24.53', '2026-11-24 16:18:24.53-05', '{note,amount}', '{}', '0x0000000004D6', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007E80004', 1, '0x0000002D000007E80002', 1, '2026-11-24 21:18:24.533', '2026-11-24 16:18:24.533-05', '{amount}', '{}', '0x0000000004D7', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007E80004', 1, '0x0000002D000007E80002', 2, '2026-11-24 21:18:24.533', '2026-11-24 16:18:24.533-05', '{amount}', '{}', '0x0000000004D7', false);
INSERT INTO kept.lab_asserted_history VALUES (4305184, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000007F80004', 1, '0x0000002D000007F80002', 1, '2026-11-24 21:18:24.543', '2026-11-24 16:18:24.543-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D9', false);
INSERT INTO kept.lab_asserted_history VALUES (4305185, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007F80004', 2, '0x0000002D000007F80003', 2, '2026-11-24 21:18:24.543', '2026-11-24 16:18:24.543-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D9', false);
INSERT INTO kept.lab_asserted_history VALUES (4546731, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000006D8000A', 4, '0x0000002D000006D80007', 6, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (4546731, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006D8000A', 5, '0x0000002D000006D80008', 7, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{note,amount}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (4546731, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006D8000A', 5, '0x0000002D000006D80008', 8, '2026-11-24 21:18:23.977', '2026-11-24 16:18:23.977-05', '{note,amount}', '{}', '0x0000000004B5', false);
INSERT INTO kept.lab_asserted_history VALUES (4546731, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006E00004', 1, '0x0000002D000006E00002', 1, '2026-11-24 21:18:23.98', '2026-11-24 16:18:23.98-05', '{amount}', '{}', '0x0000000004B6', false);
INSERT INTO kept.lab_asserted_history VALUES (4546731, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006E00004', 1, '0x0000002D000006E00002', 2, '2026-11-24 21:18:23.98', '2026-11-24 16:18:23.98-05', '{amount}', '{}', '0x0000000004B6', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000250000A', 4, '0x0000002D000002500007', 6, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000250000A', 5, '0x0000002D000002500008', 7, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{note,amount}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000250000A', 5, '0x0000002D000002500008', 8, '2026-11-24 21:18:20.79', '2026-11-24 16:18:20.79-05', '{note,amount}', '{}', '0x000000000424', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002580004', 1, '0x0000002D000002580002', 1, '2026-11-24 21:18:20.793', '2026-11-24 16:18:20.793-05', '{amount}', '{}', '0x000000000425', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002580004', 1, '0x0000002D000002580002', 2, '2026-11-24 21:18:20.793', '2026-11-24 16:18:20.793-05', '{amount}', '{}', '0x000000000425', false);
INSERT INTO kept.lab_asserted_history VALUES (4818640, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000002680004', 1, '0x0000002D000002680002', 1, '2026-11-24 21:18:20.833', '2026-11-24 16:18:20.833-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000427', false);
INSERT INTO kept.lab_asserted_history VALUES (4818641, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000002680004', 2, '0x0000002D000002680003', 2, '2026-11-24 21:18:20.833', '2026-11-24 16:18:20.833-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000427', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000388000A', 4, '0x0000002D000003880007', 6, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000388000A', 5, '0x0000002D000003880008', 7, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{note,amount}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000388000A', 5, '0x0000002D000003880008', 8, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{note,amount}', '{}', '0x00000000044B', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003900004', 1, '0x0000002D000003900002', 1, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{amount}', '{}', '0x00000000044C', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003900004', 1, '0x0000002D000003900002', 2, '2026-11-24 21:18:21.8', '2026-11-24 16:18:21.8-05', '{amount}', '{}', '0x00000000044C', false);
INSERT INTO kept.lab_asserted_history VALUES (5281760, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000003A00004', 1, '0x0000002D000003A00002', 1, '2026-11-24 21:18:21.813', '2026-11-24 16:18:21.813-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000044E', false);
INSERT INTO kept.lab_asserted_history VALUES (5281761, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003A00004', 2, '0x0000002D000003A00003', 2, '2026-11-24 21:18:21.813', '2026-11-24 16:18:21.813-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000044E', false);
INSERT INTO kept.lab_asserted_history VALUES (7412639, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000005C0000A', 4, '0x0000002D000005C00007', 6, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (7412639, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005C0000A', 5, '0x0000002D000005C00008', 7, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{note,amount}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (7412639, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005C0000A', 5, '0x0000002D000005C00008', 8, '2026-11-24 21:18:23.507', '2026-11-24 16:18:23.507-05', '{note,amount}', '{}', '0x000000000492', false);
INSERT INTO kept.lab_asserted_history VALUES (7412639, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005C80004', 1, '0x0000002D000005C80002', 1, '2026-11-24 21:18:23.513', '2026-11-24 16:18:23.513-05', '{amount}', '{}', '0x000000000493', false);
INSERT INTO kept.lab_asserted_history VALUES (7412639, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005C80004', 1, '0x0000002D000005C80002', 2, '2026-11-24 21:18:23.513', '2026-11-24 16:18:23.513-05', '{amount}', '{}', '0x000000000493', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000130000A', 4, '0x0000002D000001300007', 6, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000130000A', 5, '0x0000002D000001300008', 7, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{note,amount}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000130000A', 5, '0x0000002D000001300008', 8, '2026-11-24 21:18:20.207', '2026-11-24 16:18:20.207-05', '{note,amount}', '{}', '0x000000000400', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000001380004', 1, '0x0000002D000001380002', 1, '2026-11-24 21:18:20.213', '2026-11-24 16:18:20.213-05', '{amount}', '{}', '0x000000000401', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000001380004', 1, '0x0000002D000001380002', 2, '2026-11-24 21:18:20.213', '2026-11-24 16:18:20.213-05', '{amount}', '{}', '0x000000000401', false);
INSERT INTO kept.lab_asserted_history VALUES (7559636, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000001480004', 1, '0x0000002D000001480002', 1, '2026-11-24 21:18:20.227', '2026-11-24 16:18:20.227-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000403', false);
INSERT INTO kept.lab_asserted_history VALUES (7559637, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000001480004', 2, '0x0000002D000001480003', 2, '2026-11-24 21:18:20.227', '2026-11-24 16:18:20.227-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000403', false);


--
-- Data for Name: lab_chosen_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_chosen_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_chosen_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'B', '0x0000002D00000348000A', 1, '0x0000002D000003480002', 1, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{name,amount}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (1, 'ä 6517046', NULL, 0.25, '2026-01-01 10:00:00', 'm1@example.org', 'U', '0x0000002D00000348000A', 1, '0x0000002D000003480002', 2, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{name,amount}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'B', '0x0000002D00000218000A', 2, '0x0000002D000002180004', 3, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{note,email}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (2, 'name 2', '7959916', 2.25, '2026-01-02 10:00:00', NULL, 'U', '0x0000002D00000218000A', 2, '0x0000002D000002180004', 4, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{note,email}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'B', '0x0000002D00000588000A', 2, '0x0000002D000005880004', 3, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{note,email}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (3, 'name 3', '2908152', 3.25, '2026-01-03 10:00:00', NULL, 'U', '0x0000002D00000588000A', 2, '0x0000002D000005880004', 4, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{note,email}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (3, 'name 3', '2908152', 3.25, '2026-01-03 10:00:00', NULL, 'D', '0x0000002D000006A0000A', 3, '0x0000002D000006A00006', 5, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000006B00003', 1, '0x0000002D000006B00002', 1, '2026-11-24 21:18:23.89', '2026-11-24 16:18:23.89-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004B0', false);
INSERT INTO kept.lab_chosen_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'B', '0x0000002D000006A0000A', 1, '0x0000002D000006A00002', 1, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{name,amount}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (4, 'ä 9253221', NULL, 0.25, '2026-01-04 10:00:00', 'm4@example.org', 'U', '0x0000002D000006A0000A', 1, '0x0000002D000006A00002', 2, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{name,amount}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (4, 'ä 9253221', NULL, 0.25, '2026-01-04 10:00:00', 'm4@example.org', 'D', '0x0000002D000008C8000A', 3, '0x0000002D000008C80006', 5, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (4, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000008D80003', 1, '0x0000002D000008D80002', 1, '2026-11-24 21:18:24.97', '2026-11-24 16:18:24.97-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004F5', false);
INSERT INTO kept.lab_chosen_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'D', '0x0000002D00000218000A', 3, '0x0000002D000002180006', 5, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000002280003', 1, '0x0000002D000002280002', 1, '2026-11-24 21:18:20.69', '2026-11-24 16:18:20.69-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000041F', false);
INSERT INTO kept.lab_chosen_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'D', '0x0000002D00000348000A', 3, '0x0000002D000003480006', 5, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000003580003', 1, '0x0000002D000003580002', 1, '2026-11-24 21:18:21.673', '2026-11-24 16:18:21.673-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000445', false);
INSERT INTO kept.lab_chosen_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000007A8000A', 2, '0x0000002D000007A80004', 3, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{note,email}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (6, 'back', '1618318', 2.00, NULL, NULL, 'U', '0x0000002D000007A8000A', 2, '0x0000002D000007A80004', 4, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{note,email}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'D', '0x0000002D000000F8000A', 3, '0x0000002D000000F80006', 5, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (7, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000001080003', 1, '0x0000002D000001080002', 1, '2026-11-24 21:18:20.09', '2026-11-24 16:18:20.09-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003FB', false);
INSERT INTO kept.lab_chosen_history VALUES (7, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000007A8000A', 1, '0x0000002D000007A80002', 1, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{name,amount}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (7, 'ä 1618318', NULL, 0.00, NULL, 'b@example.org', 'U', '0x0000002D000007A8000A', 1, '0x0000002D000007A80002', 2, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{name,amount}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D00000218000A', 1, '0x0000002D000002180002', 1, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{name,amount}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (8, 'ä 7959916', NULL, 6.25, '2026-01-08 10:00:00', 'm8@example.org', 'U', '0x0000002D00000218000A', 1, '0x0000002D000002180002', 2, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{name,amount}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (8, 'ä 7959916', NULL, 6.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D000008C8000A', 1, '0x0000002D000008C80002', 1, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{name,amount}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (8, 'ä 7000883', NULL, 5.25, '2026-01-08 10:00:00', 'm8@example.org', 'U', '0x0000002D000008C8000A', 1, '0x0000002D000008C80002', 2, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{name,amount}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'B', '0x0000002D000000F8000A', 2, '0x0000002D000000F80004', 3, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{note,email}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '3882030', 9.25, '2026-01-09 10:00:00', NULL, 'U', '0x0000002D000000F8000A', 2, '0x0000002D000000F80004', 4, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{note,email}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '3882030', 9.25, '2026-01-09 10:00:00', NULL, 'B', '0x0000002D00000478000A', 2, '0x0000002D000004780004', 3, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{note}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '5405503', 9.25, '2026-01-09 10:00:00', NULL, 'U', '0x0000002D00000478000A', 2, '0x0000002D000004780004', 4, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{note}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'name 9', '5405503', 9.25, '2026-01-09 10:00:00', NULL, 'D', '0x0000002D00000588000A', 3, '0x0000002D000005880006', 5, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000005980003', 1, '0x0000002D000005980002', 1, '2026-11-24 21:18:23.407', '2026-11-24 16:18:23.407-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000048D', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'B', '0x0000002D00000478000A', 1, '0x0000002D000004780002', 1, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{name,amount}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'ä 5405503', NULL, 7.25, '2026-01-10 10:00:00', 'm10@example.org', 'U', '0x0000002D00000478000A', 1, '0x0000002D000004780002', 2, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{name,amount}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'ä 5405503', NULL, 7.25, '2026-01-10 10:00:00', 'm10@example.org', 'B', '0x0000002D00000588000A', 1, '0x0000002D000005880002', 1, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{name,amount}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'ä 2908152', NULL, 3.25, '2026-01-10 10:00:00', 'm10@example.org', 'U', '0x0000002D00000588000A', 1, '0x0000002D000005880002', 2, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{name,amount}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'ä 2908152', NULL, 3.25, '2026-01-10 10:00:00', 'm10@example.org', 'B', '0x0000002D000008C8000A', 2, '0x0000002D000008C80004', 3, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{note,email}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (10, 'ä 2908152', '7000883', 3.25, '2026-01-10 10:00:00', NULL, 'U', '0x0000002D000008C8000A', 2, '0x0000002D000008C80004', 4, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{note,email}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'B', '0x0000002D00000348000A', 2, '0x0000002D000003480004', 3, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{note,email}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'name 11', '6517046', 11.25, '2026-01-11 10:00:00', NULL, 'U', '0x0000002D00000348000A', 2, '0x0000002D000003480004', 4, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{note,email}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'name 11', '6517046', 11.25, '2026-01-11 10:00:00', NULL, 'D', '0x0000002D00000478000A', 3, '0x0000002D000004780006', 5, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000004880003', 1, '0x0000002D000004880002', 1, '2026-11-24 21:18:22.6', '2026-11-24 16:18:22.6-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000046B', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org', 'D', '0x0000002D000007A8000A', 3, '0x0000002D000007A80006', 5, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000007B80003', 1, '0x0000002D000007B80002', 1, '2026-11-24 21:18:24.447', '2026-11-24 16:18:24.447-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004D1', false);
INSERT INTO kept.lab_chosen_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'B', '0x0000002D000000F8000A', 1, '0x0000002D000000F80002', 1, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{name,amount}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (12, 'ä 3882030', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 8.25, '2026-01-12 10:00:00', 'm12@example.org', 'U', '0x0000002D000000F8000A', 1, '0x0000002D000000F80002', 2, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{name,amount}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (12, 'ä 3882030', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 8.25, '2026-01-12 10:00:00', 'm12@example.org', 'B', '0x0000002D000006A0000A', 2, '0x0000002D000006A00004', 3, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{note,email}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (12, 'ä 3882030', '9253221', 8.25, '2026-01-12 10:00:00', NULL, 'U', '0x0000002D000006A0000A', 2, '0x0000002D000006A00004', 4, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{note,email}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007A8000A', 4, '0x0000002D000007A80007', 6, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007A8000A', 5, '0x0000002D000007A80008', 7, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{note,amount}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007A8000A', 5, '0x0000002D000007A80008', 8, '2026-11-24 21:18:24.433', '2026-11-24 16:18:24.433-05', '{note,amount}', '{}', '0x0000000004CF', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007B00004', 1, '0x0000002D000007B00002', 1, '2026-11-24 21:18:24.437', '2026-11-24 16:18:24.437-05', '{amount}', '{}', '0x0000000004D0', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007B00004', 1, '0x0000002D000007B00002', 2, '2026-11-24 21:18:24.437', '2026-11-24 16:18:24.437-05', '{amount}', '{}', '0x0000000004D0', false);
INSERT INTO kept.lab_chosen_history VALUES (1618318, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007C00004', 1, '0x0000002D000007C00002', 1, '2026-11-24 21:18:24.45', '2026-11-24 16:18:24.45-05', '{id}', '{}', '0x0000000004D2', false);
INSERT INTO kept.lab_chosen_history VALUES (1618319, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007C00004', 1, '0x0000002D000007C00002', 2, '2026-11-24 21:18:24.45', '2026-11-24 16:18:24.45-05', '{id}', '{}', '0x0000000004D2', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000588000A', 4, '0x0000002D000005880007', 6, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000588000A', 5, '0x0000002D000005880008', 7, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{note,amount}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000588000A', 5, '0x0000002D000005880008', 8, '2026-11-24 21:18:23.4', '2026-11-24 16:18:23.4-05', '{note,amount}', '{}', '0x00000000048B', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005900004', 1, '0x0000002D000005900002', 1, '2026-11-24 21:18:23.403', '2026-11-24 16:18:23.403-05', '{amount}', '{}', '0x00000000048C', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005900004', 1, '0x0000002D000005900002', 2, '2026-11-24 21:18:23.403', '2026-11-24 16:18:23.403-05', '{amount}', '{}', '0x00000000048C', false);
INSERT INTO kept.lab_chosen_history VALUES (2908152, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005A00004', 1, '0x0000002D000005A00002', 1, '2026-11-24 21:18:23.407', '2026-11-24 16:18:23.407-05', '{id}', '{}', '0x00000000048E', false);
INSERT INTO kept.lab_chosen_history VALUES (2908153, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005A00004', 1, '0x0000002D000005A00002', 2, '2026-11-24 21:18:23.407', '2026-11-24 16:18:23.407-05', '{id}', '{}', '0x00000000048E', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000000F8000A', 4, '0x0000002D000000F80007', 6, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000000F8000A', 5, '0x0000002D000000F80008', 7, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{note,amount}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000000F8000A', 5, '0x0000002D000000F80008', 8, '2026-11-24 21:18:20.083', '2026-11-24 16:18:20.083-05', '{note,amount}', '{}', '0x0000000003F9', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000001000004', 1, '0x0000002D000001000002', 1, '2026-11-24 21:18:20.087', '2026-11-24 16:18:20.087-05', '{amount}', '{}', '0x0000000003FA', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000001000004', 1, '0x0000002D000001000002', 2, '2026-11-24 21:18:20.087', '2026-11-24 16:18:20.087-05', '{amount}', '{}', '0x0000000003FA', false);
INSERT INTO kept.lab_chosen_history VALUES (3882030, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000001100004', 1, '0x0000002D000001100002', 1, '2026-11-24 21:18:20.097', '2026-11-24 16:18:20.097-05', '{id}', '{}', '0x0000000003FC', false);
INSERT INTO kept.lab_chosen_history VALUES (3882031, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000001100004', 1, '0x0000002D000001100002', 2, '2026-11-24 21:18:20.097', '2026-11-24 16:18:20.097-05', '{id}', '{}', '0x0000000003FC', false);
INSERT INTO kept.lab_chosen_history VALUES (5405503, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000478000A', 4, '0x0000002D000004780007', 6, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (5405503, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000478000A', 5, '0x0000002D000004780008', 7, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{note,amount}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (5405503, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000478000A', 5, '0x0000002D000004780008', 8, '2026-11-24 21:18:22.56', '2026-11-24 16:18:22.56-05', '{note,amount}', '{}', '0x000000000469', false);
INSERT INTO kept.lab_chosen_history VALUES (5405503, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000004800004', 1, '0x0000002D000004800002', 1, '2026-11-24 21:18:22.57', '2026-11-24 16:18:22.57-05', '{amount}', '{}', '0x00000000046A', false);
INSERT INTO kept.lab_chosen_history VALUES (5405503, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000004800004', 1, '0x0000002D000004800002', 2, '2026-11-24 21:18:22.57', '2026-11-24 16:18:22.57-05', '{amount}', '{}', '0x00000000046A', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000348000A', 4, '0x0000002D000003480007', 6, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000348000A', 5, '0x0000002D000003480008', 7, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{note,amount}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000348000A', 5, '0x0000002D000003480008', 8, '2026-11-24 21:18:21.667', '2026-11-24 16:18:21.667-05', '{note,amount}', '{}', '0x000000000443', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003500004', 1, '0x0000002D000003500002', 1, '2026-11-24 21:18:21.67', '2026-11-24 16:18:21.67-05', '{amount}', '{}', '0x000000000444', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003500004', 1, '0x0000002D000003500002', 2, '2026-11-24 21:18:21.67', '2026-11-24 16:18:21.67-05', '{amount}', '{}', '0x000000000444', false);
INSERT INTO kept.lab_chosen_history VALUES (6517046, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003600004', 1, '0x0000002D000003600002', 1, '2026-11-24 21:18:21.68', '2026-11-24 16:18:21.68-05', '{id}', '{}', '0x000000000446', false);
INSERT INTO kept.lab_chosen_history VALUES (6517047, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003600004', 1, '0x0000002D000003600002', 2, '2026-11-24 21:18:21.68', '2026-11-24 16:18:21.68-05', '{id}', '{}', '0x000000000446', false);
INSERT INTO kept.lab_chosen_history VALUES (7000883, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000008C8000A', 4, '0x0000002D000008C80007', 6, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (7000883, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000008C8000A', 5, '0x0000002D000008C80008', 7, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{note,amount}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (7000883, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000008C8000A', 5, '0x0000002D000008C80008', 8, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{note,amount}', '{}', '0x0000000004F3', false);
INSERT INTO kept.lab_chosen_history VALUES (7000883, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000008D00004', 1, '0x0000002D000008D00002', 1, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{amount}', '{}', '0x0000000004F4', false);
INSERT INTO kept.lab_chosen_history VALUES (7000883, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000008D00004', 1, '0x0000002D000008D00002', 2, '2026-11-24 21:18:24.967', '2026-11-24 16:18:24.967-05', '{amount}', '{}', '0x0000000004F4', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000218000A', 4, '0x0000002D000002180007', 6, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000218000A', 5, '0x0000002D000002180008', 7, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{note,amount}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000218000A', 5, '0x0000002D000002180008', 8, '2026-11-24 21:18:20.683', '2026-11-24 16:18:20.683-05', '{note,amount}', '{}', '0x00000000041D', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002200004', 1, '0x0000002D000002200002', 1, '2026-11-24 21:18:20.687', '2026-11-24 16:18:20.687-05', '{amount}', '{}', '0x00000000041E', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002200004', 1, '0x0000002D000002200002', 2, '2026-11-24 21:18:20.687', '2026-11-24 16:18:20.687-05', '{amount}', '{}', '0x00000000041E', false);
INSERT INTO kept.lab_chosen_history VALUES (7959916, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002300004', 1, '0x0000002D000002300002', 1, '2026-11-24 21:18:20.693', '2026-11-24 16:18:20.693-05', '{id}', '{}', '0x000000000420', false);
INSERT INTO kept.lab_chosen_history VALUES (7959917, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002300004', 1, '0x0000002D000002300002', 2, '2026-11-24 21:18:20.693', '2026-11-24 16:18:20.693-05', '{id}', '{}', '0x000000000420', false);
INSERT INTO kept.lab_chosen_history VALUES (9253221, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000006A0000A', 4, '0x0000002D000006A00007', 6, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (9253221, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006A0000A', 5, '0x0000002D000006A00008', 7, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{note,amount}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (9253221, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006A0000A', 5, '0x0000002D000006A00008', 8, '2026-11-24 21:18:23.88', '2026-11-24 16:18:23.88-05', '{note,amount}', '{}', '0x0000000004AE', false);
INSERT INTO kept.lab_chosen_history VALUES (9253221, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006A80004', 1, '0x0000002D000006A80002', 1, '2026-11-24 21:18:23.883', '2026-11-24 16:18:23.883-05', '{amount}', '{}', '0x0000000004AF', false);
INSERT INTO kept.lab_chosen_history VALUES (9253221, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006A80004', 1, '0x0000002D000006A80002', 2, '2026-11-24 21:18:23.883', '2026-11-24 16:18:23.883-05', '{amount}', '{}', '0x0000000004AF', false);


--
-- Data for Name: lab_gap_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_gap_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (3, 'ä 8372096', '2306436', 0.25, '2026-01-03 10:00:00', NULL, 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (5, 'name 5', '8372096', 5.25, '2026-01-05 10:00:00', NULL, 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (12, 'name 12', '2870283', 12.25, '2026-01-12 10:00:00', NULL, 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (7736109, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (2, 'ä 6539561', '5561306', -2.00, NULL, NULL, 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (6539561, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (8, 'ä 9570155', NULL, -3.00, NULL, 'b@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (8372097, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (4, 'back', '9570155', 2.00, NULL, NULL, 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (8730055, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (2870283, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (5561307, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (9570155, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (11, 'ä 2306436', NULL, 1.00, NULL, 'b@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (2306437, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_gap_history VALUES (7, 'back', NULL, 2.00, NULL, 'b@example.org', 'R', '0x0000002D000009500004', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);


--
-- Data for Name: lab_lost; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_lost VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org');
INSERT INTO kept.lab_lost VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org');
INSERT INTO kept.lab_lost VALUES (1, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_lost VALUES (3, 'ä 5768034', '9798828', 1.00, NULL, NULL);
INSERT INTO kept.lab_lost VALUES (4, 'ä 2698747', '5768034', 2.25, '2026-01-04 10:00:00', NULL);
INSERT INTO kept.lab_lost VALUES (5, 'ä 4580321', '2547854', 2.25, '2026-01-05 10:00:00', NULL);
INSERT INTO kept.lab_lost VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_lost VALUES (8, 'ä 8362524', '2698747', 7.25, '2026-01-08 10:00:00', NULL);
INSERT INTO kept.lab_lost VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_lost VALUES (10, 'ä 2547854', '8362524', -2.00, NULL, NULL);
INSERT INTO kept.lab_lost VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_lost VALUES (12, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_lost VALUES (291629, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (2547855, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (2698747, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (4580321, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (5768035, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (8362525, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (8481789, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_lost VALUES (9798829, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');


--
-- Data for Name: lab_lost_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_lost_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_lost_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'B', '0x0000002D000003C0000A', 2, '0x0000002D000003C00004', 3, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{note,email}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (1, 'name 1', '8481788', 1.25, '2026-01-01 10:00:00', NULL, 'U', '0x0000002D000003C0000A', 2, '0x0000002D000003C00004', 4, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{note,email}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (1, 'name 1', '8481788', 1.25, '2026-01-01 10:00:00', NULL, 'D', '0x0000002D000005F8000A', 3, '0x0000002D000005F80006', 5, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (1, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000006080003', 1, '0x0000002D000006080002', 1, '2026-11-24 21:18:23.637', '2026-11-24 16:18:23.637-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049B', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'B', '0x0000002D00000170000A', 2, '0x0000002D000001700004', 3, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{note,email}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'name 3', '291628', 3.25, '2026-01-03 10:00:00', NULL, 'U', '0x0000002D00000170000A', 2, '0x0000002D000001700004', 4, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{note,email}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'name 3', '291628', 3.25, '2026-01-03 10:00:00', NULL, 'D', '0x0000002D000003C0000A', 3, '0x0000002D000003C00006', 5, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000003D00003', 1, '0x0000002D000003D00002', 1, '2026-11-24 21:18:22.02', '2026-11-24 16:18:22.02-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000454', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'D', '0x0000002D000004F0000A', 3, '0x0000002D000004F00006', 5, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000005000003', 1, '0x0000002D000005000002', 1, '2026-11-24 21:18:23.007', '2026-11-24 16:18:23.007-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000047A', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D000005F8000A', 2, '0x0000002D000005F80004', 3, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{note,email}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', '9798828', 2.00, NULL, NULL, 'U', '0x0000002D000005F8000A', 2, '0x0000002D000005F80004', 4, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{note,email}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'back', '9798828', 2.00, NULL, NULL, 'B', '0x0000002D00000938000A', 1, '0x0000002D000009380002', 1, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{name,amount}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (3, 'ä 5768034', '9798828', 1.00, NULL, NULL, 'U', '0x0000002D00000938000A', 1, '0x0000002D000009380002', 2, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{name,amount}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'B', '0x0000002D00000818000A', 1, '0x0000002D000008180002', 1, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{name,amount}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (4, 'ä 2698747', NULL, 2.25, '2026-01-04 10:00:00', 'm4@example.org', 'U', '0x0000002D00000818000A', 1, '0x0000002D000008180002', 2, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{name,amount}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (4, 'ä 2698747', NULL, 2.25, '2026-01-04 10:00:00', 'm4@example.org', 'B', '0x0000002D00000938000A', 2, '0x0000002D000009380004', 3, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{note,email}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (4, 'ä 2698747', '5768034', 2.25, '2026-01-04 10:00:00', NULL, 'U', '0x0000002D00000938000A', 2, '0x0000002D000009380004', 4, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{note,email}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'B', '0x0000002D000004F0000A', 1, '0x0000002D000004F00002', 1, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{name,amount}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (5, 'ä 4580321', NULL, 2.25, '2026-01-05 10:00:00', 'm5@example.org', 'U', '0x0000002D000004F0000A', 1, '0x0000002D000004F00002', 2, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{name,amount}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (5, 'ä 4580321', NULL, 2.25, '2026-01-05 10:00:00', 'm5@example.org', 'B', '0x0000002D00000708000A', 2, '0x0000002D000007080004', 3, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{note,email}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (5, 'ä 4580321', '2547854', 2.25, '2026-01-05 10:00:00', NULL, 'U', '0x0000002D00000708000A', 2, '0x0000002D000007080004', 4, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{note,email}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'B', '0x0000002D000003C0000A', 1, '0x0000002D000003C00002', 1, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{name,amount}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'ä 8481788', '66666666666666666666666666666666666666666666666666', 5.25, '2026-01-06 10:00:00', 'm6@example.org', 'U', '0x0000002D000003C0000A', 1, '0x0000002D000003C00002', 2, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{name,amount}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'ä 8481788', '66666666666666666666666666666666666666666666666666', 5.25, '2026-01-06 10:00:00', 'm6@example.org', 'B', '0x0000002D000004F0000A', 2, '0x0000002D000004F00004', 3, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{note,email}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'ä 8481788', '4580321', 5.25, '2026-01-06 10:00:00', NULL, 'U', '0x0000002D000004F0000A', 2, '0x0000002D000004F00004', 4, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{note,email}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'ä 8481788', '4580321', 5.25, '2026-01-06 10:00:00', NULL, 'D', '0x0000002D00000818000A', 3, '0x0000002D000008180006', 5, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000008280003', 1, '0x0000002D000008280002', 1, '2026-11-24 21:18:24.673', '2026-11-24 16:18:24.673-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004DF', false);
INSERT INTO kept.lab_lost_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D00000290000A', 1, '0x0000002D000002900002', 1, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{name,amount}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (8, 'ä 8362524', NULL, 7.25, '2026-01-08 10:00:00', 'm8@example.org', 'U', '0x0000002D00000290000A', 1, '0x0000002D000002900002', 2, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{name,amount}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (8, 'ä 8362524', NULL, 7.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D00000818000A', 2, '0x0000002D000008180004', 3, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{note,email}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (8, 'ä 8362524', '2698747', 7.25, '2026-01-08 10:00:00', NULL, 'U', '0x0000002D00000818000A', 2, '0x0000002D000008180004', 4, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{note,email}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'B', '0x0000002D00000170000A', 1, '0x0000002D000001700002', 1, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{name,amount}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (9, 'ä 291628', '99999999999999999999999999999999999999999999999999', 6.25, '2026-01-09 10:00:00', 'm9@example.org', 'U', '0x0000002D00000170000A', 1, '0x0000002D000001700002', 2, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{name,amount}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (9, 'ä 291628', '99999999999999999999999999999999999999999999999999', 6.25, '2026-01-09 10:00:00', 'm9@example.org', 'D', '0x0000002D00000938000A', 3, '0x0000002D000009380006', 5, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000009480003', 1, '0x0000002D000009480002', 1, '2026-11-24 21:18:25.267', '2026-11-24 16:18:25.267-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000503', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'D', '0x0000002D00000170000A', 3, '0x0000002D000001700006', 5, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000001800003', 1, '0x0000002D000001800002', 1, '2026-11-24 21:18:20.36', '2026-11-24 16:18:20.36-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040A', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D00000290000A', 2, '0x0000002D000002900004', 3, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{note,email}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'back', '8362524', 2.00, NULL, NULL, 'U', '0x0000002D00000290000A', 2, '0x0000002D000002900004', 4, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{note,email}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'back', '8362524', 2.00, NULL, NULL, 'B', '0x0000002D00000708000A', 1, '0x0000002D000007080002', 1, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{name,amount}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (10, 'ä 2547854', '8362524', -2.00, NULL, NULL, 'U', '0x0000002D00000708000A', 1, '0x0000002D000007080002', 2, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{name,amount}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'B', '0x0000002D000005F8000A', 1, '0x0000002D000005F80002', 1, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{name,amount}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (11, 'ä 9798828', NULL, 10.25, '2026-01-11 10:00:00', 'm11@example.org', 'U', '0x0000002D000005F8000A', 1, '0x0000002D000005F80002', 2, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{name,amount}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (11, 'ä 9798828', NULL, 10.25, '2026-01-11 10:00:00', 'm11@example.org', 'D', '0x0000002D00000708000A', 3, '0x0000002D000007080006', 5, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000007180003', 1, '0x0000002D000007180002', 1, '2026-11-24 21:18:24.057', '2026-11-24 16:18:24.057-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BD', false);
INSERT INTO kept.lab_lost_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'D', '0x0000002D00000290000A', 3, '0x0000002D000002900006', 5, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (12, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000002A00003', 1, '0x0000002D000002A00002', 1, '2026-11-24 21:18:21.13', '2026-11-24 16:18:21.13-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000042E', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000170000A', 4, '0x0000002D000001700007', 6, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000170000A', 5, '0x0000002D000001700008', 7, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{note,amount}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000170000A', 5, '0x0000002D000001700008', 8, '2026-11-24 21:18:20.343', '2026-11-24 16:18:20.343-05', '{note,amount}', '{}', '0x000000000408', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000001780004', 1, '0x0000002D000001780002', 1, '2026-11-24 21:18:20.347', '2026-11-24 16:18:20.347-05', '{amount}', '{}', '0x000000000409', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000001780004', 1, '0x0000002D000001780002', 2, '2026-11-24 21:18:20.347', '2026-11-24 16:18:20.347-05', '{amount}', '{}', '0x000000000409', false);
INSERT INTO kept.lab_lost_history VALUES (291628, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000001880004', 1, '0x0000002D000001880002', 1, '2026-11-24 21:18:20.377', '2026-11-24 16:18:20.377-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040B', false);
INSERT INTO kept.lab_lost_history VALUES (291629, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000001880004', 2, '0x0000002D000001880003', 2, '2026-11-24 21:18:20.377', '2026-11-24 16:18:20.377-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040B', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000708000A', 4, '0x0000002D000007080007', 6, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000708000A', 5, '0x0000002D000007080008', 7, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{note,amount}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000708000A', 5, '0x0000002D000007080008', 8, '2026-11-24 21:18:24.05', '2026-11-24 16:18:24.05-05', '{note,amount}', '{}', '0x0000000004BB', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007100004', 1, '0x0000002D000007100002', 1, '2026-11-24 21:18:24.053', '2026-11-24 16:18:24.053-05', '{amount}', '{}', '0x0000000004BC', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007100004', 1, '0x0000002D000007100002', 2, '2026-11-24 21:18:24.053', '2026-11-24 16:18:24.053-05', '{amount}', '{}', '0x0000000004BC', false);
INSERT INTO kept.lab_lost_history VALUES (2547854, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000007200004', 1, '0x0000002D000007200002', 1, '2026-11-24 21:18:24.09', '2026-11-24 16:18:24.09-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BE', false);
INSERT INTO kept.lab_lost_history VALUES (2547855, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007200004', 2, '0x0000002D000007200003', 2, '2026-11-24 21:18:24.09', '2026-11-24 16:18:24.09-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BE', false);
INSERT INTO kept.lab_lost_history VALUES (2698747, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000818000A', 4, '0x0000002D000008180007', 6, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (2698747, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000818000A', 5, '0x0000002D000008180008', 7, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{note,amount}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (2698747, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000818000A', 5, '0x0000002D000008180008', 8, '2026-11-24 21:18:24.667', '2026-11-24 16:18:24.667-05', '{note,amount}', '{}', '0x0000000004DD', false);
INSERT INTO kept.lab_lost_history VALUES (2698747, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000008200004', 1, '0x0000002D000008200002', 1, '2026-11-24 21:18:24.67', '2026-11-24 16:18:24.67-05', '{amount}', '{}', '0x0000000004DE', false);
INSERT INTO kept.lab_lost_history VALUES (2698747, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000008200004', 1, '0x0000002D000008200002', 2, '2026-11-24 21:18:24.67', '2026-11-24 16:18:24.67-05', '{amount}', '{}', '0x0000000004DE', false);
INSERT INTO kept.lab_lost_history VALUES (4580321, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000004F0000A', 4, '0x0000002D000004F00007', 6, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (4580321, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000004F0000A', 5, '0x0000002D000004F00008', 7, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{note,amount}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (4580321, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000004F0000A', 5, '0x0000002D000004F00008', 8, '2026-11-24 21:18:22.99', '2026-11-24 16:18:22.99-05', '{note,amount}', '{}', '0x000000000478', false);
INSERT INTO kept.lab_lost_history VALUES (4580321, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000004F80004', 1, '0x0000002D000004F80002', 1, '2026-11-24 21:18:22.993', '2026-11-24 16:18:22.993-05', '{amount}', '{}', '0x000000000479', false);
INSERT INTO kept.lab_lost_history VALUES (4580321, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000004F80004', 1, '0x0000002D000004F80002', 2, '2026-11-24 21:18:22.993', '2026-11-24 16:18:22.993-05', '{amount}', '{}', '0x000000000479', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000938000A', 4, '0x0000002D000009380007', 6, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000938000A', 5, '0x0000002D000009380008', 7, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{note,amount}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000938000A', 5, '0x0000002D000009380008', 8, '2026-11-24 21:18:25.253', '2026-11-24 16:18:25.253-05', '{note,amount}', '{}', '0x000000000501', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000009400004', 1, '0x0000002D000009400002', 1, '2026-11-24 21:18:25.26', '2026-11-24 16:18:25.26-05', '{amount}', '{}', '0x000000000502', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000009400004', 1, '0x0000002D000009400002', 2, '2026-11-24 21:18:25.26', '2026-11-24 16:18:25.26-05', '{amount}', '{}', '0x000000000502', false);
INSERT INTO kept.lab_lost_history VALUES (5768034, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000009500004', 1, '0x0000002D000009500002', 1, '2026-11-24 21:18:25.27', '2026-11-24 16:18:25.27-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000504', false);
INSERT INTO kept.lab_lost_history VALUES (5768035, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000009500004', 2, '0x0000002D000009500003', 2, '2026-11-24 21:18:25.27', '2026-11-24 16:18:25.27-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000504', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000290000A', 4, '0x0000002D000002900007', 6, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000290000A', 5, '0x0000002D000002900008', 7, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{note,amount}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000290000A', 5, '0x0000002D000002900008', 8, '2026-11-24 21:18:21.093', '2026-11-24 16:18:21.093-05', '{note,amount}', '{}', '0x00000000042C', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002980004', 1, '0x0000002D000002980002', 1, '2026-11-24 21:18:21.103', '2026-11-24 16:18:21.103-05', '{amount}', '{}', '0x00000000042D', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002980004', 1, '0x0000002D000002980002', 2, '2026-11-24 21:18:21.103', '2026-11-24 16:18:21.103-05', '{amount}', '{}', '0x00000000042D', false);
INSERT INTO kept.lab_lost_history VALUES (8362524, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000002A80004', 1, '0x0000002D000002A80002', 1, '2026-11-24 21:18:21.133', '2026-11-24 16:18:21.133-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000042F', false);
INSERT INTO kept.lab_lost_history VALUES (8362525, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000002A80004', 2, '0x0000002D000002A80003', 2, '2026-11-24 21:18:21.133', '2026-11-24 16:18:21.133-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000042F', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003C0000A', 4, '0x0000002D000003C00007', 6, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003C0000A', 5, '0x0000002D000003C00008', 7, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{note,amount}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003C0000A', 5, '0x0000002D000003C00008', 8, '2026-11-24 21:18:21.99', '2026-11-24 16:18:21.99-05', '{note,amount}', '{}', '0x000000000452', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003C80004', 1, '0x0000002D000003C80002', 1, '2026-11-24 21:18:21.993', '2026-11-24 16:18:21.993-05', '{amount}', '{}', '0x000000000453', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003C80004', 1, '0x0000002D000003C80002', 2, '2026-11-24 21:18:21.993', '2026-11-24 16:18:21.993-05', '{amount}', '{}', '0x000000000453', false);
INSERT INTO kept.lab_lost_history VALUES (8481788, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000003D80004', 1, '0x0000002D000003D80002', 1, '2026-11-24 21:18:22.023', '2026-11-24 16:18:22.023-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000455', false);
INSERT INTO kept.lab_lost_history VALUES (8481789, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003D80004', 2, '0x0000002D000003D80003', 2, '2026-11-24 21:18:22.023', '2026-11-24 16:18:22.023-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000455', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000005F8000A', 4, '0x0000002D000005F80007', 6, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005F8000A', 5, '0x0000002D000005F80008', 7, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{note,amount}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005F8000A', 5, '0x0000002D000005F80008', 8, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{note,amount}', '{}', '0x000000000499', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006000004', 1, '0x0000002D000006000002', 1, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{amount}', '{}', '0x00000000049A', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006000004', 1, '0x0000002D000006000002', 2, '2026-11-24 21:18:23.633', '2026-11-24 16:18:23.633-05', '{amount}', '{}', '0x00000000049A', false);
INSERT INTO kept.lab_lost_history VALUES (9798828, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000006100004', 1, '0x0000002D000006100002', 1, '2026-11-24 21:18:23.64', '2026-11-24 16:18:23.64-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049C', false);
INSERT INTO kept.lab_lost_history VALUES (9798829, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000006100004', 2, '0x0000002D000006100003', 2, '2026-11-24 21:18:23.64', '2026-11-24 16:18:23.64-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049C', false);


--
-- Data for Name: lab_masked; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_masked VALUES ('dcfdf4a4204b94dcdd6b3c0bd951ac9eb0398e82a8af92e7b0d4bfb18d198377', 'name 2', 2.25, 'acd9f295904aabc5413afbe9d03bc992bbf28907cec799b8ff25a22f0020a96e');
INSERT INTO kept.lab_masked VALUES ('dff346afe66034a7958a43e29baa094c3422c695c44d92d941ede53f4dfd29a2', 'name 3', 3.25, 'a89fcb63fbd330b977370a8641ea0771e9c03691040efa03b4d8278f8e21d446');
INSERT INTO kept.lab_masked VALUES ('db787b680903b65d2dad0634735b75a210614e39569e51ec676709aa198fad61', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c');
INSERT INTO kept.lab_masked VALUES ('109c8db8b89c04faa8c81553e9a3de27296ce09b3ce6fd62781686964b75dd45', 'ä 7231064', 1.25, '16ac56a8b7366d9b39b0c0d952eb9a6d29851212f833232593051b7318feeeae');
INSERT INTO kept.lab_masked VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 6395525', 4.25, NULL);
INSERT INTO kept.lab_masked VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, NULL);
INSERT INTO kept.lab_masked VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c');
INSERT INTO kept.lab_masked VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c');
INSERT INTO kept.lab_masked VALUES ('396673fd173a3de96e572954f5c9553065df4c26d887fd582c15f6f23ada66d0', 'name 10', 10.25, NULL);
INSERT INTO kept.lab_masked VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c');
INSERT INTO kept.lab_masked VALUES ('ec1186a45b5bbec8985aa0880e0d74dbb956a2bd9f991f107ab2ca320d10c34d', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('4cc7251b59b8df7600d449f28fbd556a20c5013188a0a0b3d76100747f3e8da5', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('f8b77d942e9a5e9267fda90f9b61493f15e4874f97ac2a8ecbd22e7bb1e176cd', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('b1e1731969a6e3e26fc53130868ca9b6d7f4e836cd8ec7c92cdedff59a0e5977', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('14412230668e1ce5a886660023733316fb3eff652b21ab9d63ca5aa132961008', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('76c10c84e9949cdfc9996a259116ddf6f66ef1574d781920879b5adf1b900bc9', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('f34762f297a288a36c3e9d21eff11011751bd0048f50e984e8278aed4e0c0011', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');
INSERT INTO kept.lab_masked VALUES ('fa33d8b6180330f9c45a56ef0e28eb5c5c0cbd37d2990b54629b2bf01fbda677', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12');


--
-- Data for Name: lab_masked_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_masked_history VALUES ('db787b680903b65d2dad0634735b75a210614e39569e51ec676709aa198fad61', 'name 1', 1.25, '508e0b8d614db3b218f57fb78ed8de76a4ecd72a0fd0558da752ccb47135e519', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('dcfdf4a4204b94dcdd6b3c0bd951ac9eb0398e82a8af92e7b0d4bfb18d198377', 'name 2', 2.25, 'acd9f295904aabc5413afbe9d03bc992bbf28907cec799b8ff25a22f0020a96e', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('dff346afe66034a7958a43e29baa094c3422c695c44d92d941ede53f4dfd29a2', 'name 3', 3.25, 'a89fcb63fbd330b977370a8641ea0771e9c03691040efa03b4d8278f8e21d446', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'name 4', 4.25, '9b35a8b69c9ad4bf1b6f48f75d213bc2a350508af8daf027b7e8d58a16d55eee', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('109c8db8b89c04faa8c81553e9a3de27296ce09b3ce6fd62781686964b75dd45', 'name 5', 5.25, '16ac56a8b7366d9b39b0c0d952eb9a6d29851212f833232593051b7318feeeae', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, '6bb8fec39028c9279ebed29fc43eeb865a4e21cf187deb2183068d1a84c1503f', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'name 7', 7.25, 'ebb976e1e2e62151a055295f39b825fd0f32ca11e516ae6bed0d37c3448b8572', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'name 8', 8.25, '86a95cf3d8e6327f7d34faba0f7b543bb3b95390560a99d9a32219f246b28f4e', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'name 9', 9.25, 'acf7638f5f482d7f6efc3433ef9cbbdb0001220eb3e1b5d287844c612de7c144', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('396673fd173a3de96e572954f5c9553065df4c26d887fd582c15f6f23ada66d0', 'name 10', 10.25, '42461f124219713cf6629d654a694e61ebe8bac7177dd90986bb6de3cb32a8bd', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('e23ddf7e4b090daf687a6a3a95d0c9a98eb69ab3a8c6b3017fde05c9f7307a84', 'name 11', 11.25, '4c90f280f58a5308099bc5c198d4ea15e483215b7d37a0418d77cf44942b2187', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'name 12', 12.25, '93b9b1f4d58614547832928aea20ad62903582846c5f696e3dae4af067ecaf90', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'name 4', 4.25, '9b35a8b69c9ad4bf1b6f48f75d213bc2a350508af8daf027b7e8d58a16d55eee', 'B', '0x0000002D000000D8000A', 1, '0x0000002D000000D80002', 1, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{name,amount}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'ä 3747902', 1.25, '9b35a8b69c9ad4bf1b6f48f75d213bc2a350508af8daf027b7e8d58a16d55eee', 'U', '0x0000002D000000D8000A', 1, '0x0000002D000000D80002', 2, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{name,amount}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, '6bb8fec39028c9279ebed29fc43eeb865a4e21cf187deb2183068d1a84c1503f', 'B', '0x0000002D000000D8000A', 2, '0x0000002D000000D80004', 3, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{mail}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, NULL, 'U', '0x0000002D000000D8000A', 2, '0x0000002D000000D80004', 4, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{mail}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('e23ddf7e4b090daf687a6a3a95d0c9a98eb69ab3a8c6b3017fde05c9f7307a84', 'name 11', 11.25, '4c90f280f58a5308099bc5c198d4ea15e483215b7d37a0418d77cf44942b2187', 'D', '0x0000002D000000D8000A', 3, '0x0000002D000000D80006', 5, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{id,name,amount,mail}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('a6afef77464278dc29d657f92d314d2d41f2797ffef22d909f26c676e0df84ae', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000000D8000A', 4, '0x0000002D000000D80007', 6, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{id,name,amount,mail}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('a6afef77464278dc29d657f92d314d2d41f2797ffef22d909f26c676e0df84ae', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D000000D8000A', 5, '0x0000002D000000D80008', 7, '2026-11-24 21:18:20.027', '2026-11-24 16:18:20.027-05', '{id,name,amount,mail}', '{}', '0x0000000003F5', false);
INSERT INTO kept.lab_masked_history VALUES ('a6afef77464278dc29d657f92d314d2d41f2797ffef22d909f26c676e0df84ae', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000000E00004', 1, '0x0000002D000000E00002', 2, '2026-11-24 21:18:20.03', '2026-11-24 16:18:20.03-05', '{id,name,amount,mail}', '{}', '0x0000000003F6', false);
INSERT INTO kept.lab_masked_history VALUES ('e23ddf7e4b090daf687a6a3a95d0c9a98eb69ab3a8c6b3017fde05c9f7307a84', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000000E80003', 1, '0x0000002D000000E80002', 1, '2026-11-24 21:18:20.033', '2026-11-24 16:18:20.033-05', '{id,name,amount,mail}', '{}', '0x0000000003F7', false);
INSERT INTO kept.lab_masked_history VALUES ('a6afef77464278dc29d657f92d314d2d41f2797ffef22d909f26c676e0df84ae', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D000000F00004', 1, '0x0000002D000000F00002', 1, '2026-11-24 21:18:20.037', '2026-11-24 16:18:20.037-05', '{id,name,amount,mail}', '{}', '0x0000000003F8', false);
INSERT INTO kept.lab_masked_history VALUES ('ec1186a45b5bbec8985aa0880e0d74dbb956a2bd9f991f107ab2ca320d10c34d', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000000F00004', 2, '0x0000002D000000F00003', 2, '2026-11-24 21:18:20.037', '2026-11-24 16:18:20.037-05', '{id,name,amount,mail}', '{}', '0x0000000003F8', false);
INSERT INTO kept.lab_masked_history VALUES ('e23ddf7e4b090daf687a6a3a95d0c9a98eb69ab3a8c6b3017fde05c9f7307a84', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'D', '0x0000002D00000200000A', 1, '0x0000002D000002000002', 1, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{id,name,amount,mail}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, NULL, 'B', '0x0000002D00000200000A', 2, '0x0000002D000002000004', 3, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, NULL, 'U', '0x0000002D00000200000A', 2, '0x0000002D000002000004', 4, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'name 7', 7.25, 'ebb976e1e2e62151a055295f39b825fd0f32ca11e516ae6bed0d37c3448b8572', 'D', '0x0000002D00000200000A', 3, '0x0000002D000002000006', 5, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{id,name,amount,mail}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('4cc7251b59b8df7600d449f28fbd556a20c5013188a0a0b3d76100747f3e8da5', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000200000A', 4, '0x0000002D000002000007', 6, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{id,name,amount,mail}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('4cc7251b59b8df7600d449f28fbd556a20c5013188a0a0b3d76100747f3e8da5', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000200000A', 5, '0x0000002D000002000008', 7, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{id,name,amount,mail}', '{}', '0x00000000041A', false);
INSERT INTO kept.lab_masked_history VALUES ('4cc7251b59b8df7600d449f28fbd556a20c5013188a0a0b3d76100747f3e8da5', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000002080004', 1, '0x0000002D000002080002', 2, '2026-11-24 21:18:20.617', '2026-11-24 16:18:20.617-05', '{id,name,amount,mail}', '{}', '0x00000000041B', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000002100003', 1, '0x0000002D000002100002', 1, '2026-11-24 21:18:20.623', '2026-11-24 16:18:20.623-05', '{id,name,amount,mail}', '{}', '0x00000000041C', false);
INSERT INTO kept.lab_masked_history VALUES ('109c8db8b89c04faa8c81553e9a3de27296ce09b3ce6fd62781686964b75dd45', 'name 5', 5.25, '16ac56a8b7366d9b39b0c0d952eb9a6d29851212f833232593051b7318feeeae', 'B', '0x0000002D00000328000A', 1, '0x0000002D000003280002', 1, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{name,amount}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('109c8db8b89c04faa8c81553e9a3de27296ce09b3ce6fd62781686964b75dd45', 'ä 7231064', 1.25, '16ac56a8b7366d9b39b0c0d952eb9a6d29851212f833232593051b7318feeeae', 'U', '0x0000002D00000328000A', 1, '0x0000002D000003280002', 2, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{name,amount}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'name 9', 9.25, 'acf7638f5f482d7f6efc3433ef9cbbdb0001220eb3e1b5d287844c612de7c144', 'B', '0x0000002D00000328000A', 2, '0x0000002D000003280004', 3, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{mail}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'name 9', 9.25, NULL, 'U', '0x0000002D00000328000A', 2, '0x0000002D000003280004', 4, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{mail}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('db787b680903b65d2dad0634735b75a210614e39569e51ec676709aa198fad61', 'name 1', 1.25, '508e0b8d614db3b218f57fb78ed8de76a4ecd72a0fd0558da752ccb47135e519', 'D', '0x0000002D00000328000A', 3, '0x0000002D000003280006', 5, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{id,name,amount,mail}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('1ce9341058c879b9e98398973fc4504ef8ab58d833e087fe36e477a987324c30', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000328000A', 4, '0x0000002D000003280007', 6, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{id,name,amount,mail}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('1ce9341058c879b9e98398973fc4504ef8ab58d833e087fe36e477a987324c30', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000328000A', 5, '0x0000002D000003280008', 7, '2026-11-24 21:18:21.58', '2026-11-24 16:18:21.58-05', '{id,name,amount,mail}', '{}', '0x00000000043F', false);
INSERT INTO kept.lab_masked_history VALUES ('1ce9341058c879b9e98398973fc4504ef8ab58d833e087fe36e477a987324c30', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000003300004', 1, '0x0000002D000003300002', 2, '2026-11-24 21:18:21.61', '2026-11-24 16:18:21.61-05', '{id,name,amount,mail}', '{}', '0x000000000440', false);
INSERT INTO kept.lab_masked_history VALUES ('db787b680903b65d2dad0634735b75a210614e39569e51ec676709aa198fad61', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000003380003', 1, '0x0000002D000003380002', 1, '2026-11-24 21:18:21.617', '2026-11-24 16:18:21.617-05', '{id,name,amount,mail}', '{}', '0x000000000441', false);
INSERT INTO kept.lab_masked_history VALUES ('1ce9341058c879b9e98398973fc4504ef8ab58d833e087fe36e477a987324c30', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D000003400004', 1, '0x0000002D000003400002', 1, '2026-11-24 21:18:21.623', '2026-11-24 16:18:21.623-05', '{id,name,amount,mail}', '{}', '0x000000000442', false);
INSERT INTO kept.lab_masked_history VALUES ('f8b77d942e9a5e9267fda90f9b61493f15e4874f97ac2a8ecbd22e7bb1e176cd', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000003400004', 2, '0x0000002D000003400003', 2, '2026-11-24 21:18:21.623', '2026-11-24 16:18:21.623-05', '{id,name,amount,mail}', '{}', '0x000000000442', false);
INSERT INTO kept.lab_masked_history VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'name 12', 12.25, '93b9b1f4d58614547832928aea20ad62903582846c5f696e3dae4af067ecaf90', 'B', '0x0000002D00000460000A', 1, '0x0000002D000004600002', 1, '2026-11-24 21:18:22.48', '2026-11-24 16:18:22.48-05', '{name,amount}', '{}', '0x000000000466', false);
INSERT INTO kept.lab_masked_history VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'ä 2680949', 10.25, '93b9b1f4d58614547832928aea20ad62903582846c5f696e3dae4af067ecaf90', 'U', '0x0000002D00000460000A', 1, '0x0000002D000004600002', 2, '2026-11-24 21:18:22.48', '2026-11-24 16:18:22.48-05', '{name,amount}', '{}', '0x000000000466', false);
INSERT INTO kept.lab_masked_history VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'name 8', 8.25, '86a95cf3d8e6327f7d34faba0f7b543bb3b95390560a99d9a32219f246b28f4e', 'D', '0x0000002D00000460000A', 3, '0x0000002D000004600006', 5, '2026-11-24 21:18:22.48', '2026-11-24 16:18:22.48-05', '{id,name,amount,mail}', '{}', '0x000000000466', false);
INSERT INTO kept.lab_masked_history VALUES ('b1e1731969a6e3e26fc53130868ca9b6d7f4e836cd8ec7c92cdedff59a0e5977', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000460000A', 4, '0x0000002D000004600007', 6, '2026-11-24 21:18:22.48', '2026-11-24 16:18:22.48-05', '{id,name,amount,mail}', '{}', '0x000000000466', false);
INSERT INTO kept.lab_masked_history VALUES ('b1e1731969a6e3e26fc53130868ca9b6d7f4e836cd8ec7c92cdedff59a0e5977', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000460000A', 5, '0x0000002D000004600008', 7, '2026-11-24 21:18:22.48', '2026-11-24 16:18:22.48-05', '{id,name,amount,mail}', '{}', '0x000000000466', false);
INSERT INTO kept.lab_masked_history VALUES ('b1e1731969a6e3e26fc53130868ca9b6d7f4e836cd8ec7c92cdedff59a0e5977', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000004680004', 1, '0x0000002D000004680002', 2, '2026-11-24 21:18:22.483', '2026-11-24 16:18:22.483-05', '{id,name,amount,mail}', '{}', '0x000000000467', false);
INSERT INTO kept.lab_masked_history VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000004700003', 1, '0x0000002D000004700002', 1, '2026-11-24 21:18:22.493', '2026-11-24 16:18:22.493-05', '{id,name,amount,mail}', '{}', '0x000000000468', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'D', '0x0000002D00000570000A', 1, '0x0000002D000005700002', 1, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{id,name,amount,mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'ä 3747902', 1.25, '9b35a8b69c9ad4bf1b6f48f75d213bc2a350508af8daf027b7e8d58a16d55eee', 'B', '0x0000002D00000570000A', 2, '0x0000002D000005700004', 3, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'ä 3747902', 1.25, NULL, 'U', '0x0000002D00000570000A', 2, '0x0000002D000005700004', 4, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, NULL, 'U', '0x0000002D000008B0000A', 2, '0x0000002D000008B00004', 4, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{mail}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'ä 2680949', 10.25, '93b9b1f4d58614547832928aea20ad62903582846c5f696e3dae4af067ecaf90', 'D', '0x0000002D00000570000A', 3, '0x0000002D000005700006', 5, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{id,name,amount,mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('14412230668e1ce5a886660023733316fb3eff652b21ab9d63ca5aa132961008', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000570000A', 4, '0x0000002D000005700007', 6, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{id,name,amount,mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('14412230668e1ce5a886660023733316fb3eff652b21ab9d63ca5aa132961008', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000570000A', 5, '0x0000002D000005700008', 7, '2026-11-24 21:18:23.367', '2026-11-24 16:18:23.367-05', '{id,name,amount,mail}', '{}', '0x000000000488', false);
INSERT INTO kept.lab_masked_history VALUES ('14412230668e1ce5a886660023733316fb3eff652b21ab9d63ca5aa132961008', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000005780004', 1, '0x0000002D000005780002', 2, '2026-11-24 21:18:23.37', '2026-11-24 16:18:23.37-05', '{id,name,amount,mail}', '{}', '0x000000000489', false);
INSERT INTO kept.lab_masked_history VALUES ('84628706a18b1ea46e110393ef4d9f5130792e5bf9e88aec211ffa70f621e715', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000005800003', 1, '0x0000002D000005800002', 1, '2026-11-24 21:18:23.373', '2026-11-24 16:18:23.373-05', '{id,name,amount,mail}', '{}', '0x00000000048A', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'name 6', 6.25, NULL, 'B', '0x0000002D00000680000A', 1, '0x0000002D000006800002', 1, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{name,amount}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 8722024', 5.25, NULL, 'U', '0x0000002D00000680000A', 1, '0x0000002D000006800002', 2, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{name,amount}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('396673fd173a3de96e572954f5c9553065df4c26d887fd582c15f6f23ada66d0', 'name 10', 10.25, '42461f124219713cf6629d654a694e61ebe8bac7177dd90986bb6de3cb32a8bd', 'B', '0x0000002D00000680000A', 2, '0x0000002D000006800004', 3, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{mail}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('396673fd173a3de96e572954f5c9553065df4c26d887fd582c15f6f23ada66d0', 'name 10', 10.25, NULL, 'U', '0x0000002D00000680000A', 2, '0x0000002D000006800004', 4, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{mail}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'D', '0x0000002D00000680000A', 3, '0x0000002D000006800006', 5, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{id,name,amount,mail}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('a79d3b0bffbfc956da2e08eef5bea05ce5df460e6ed6864bfbb24a7469847663', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000680000A', 4, '0x0000002D000006800007', 6, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{id,name,amount,mail}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('a79d3b0bffbfc956da2e08eef5bea05ce5df460e6ed6864bfbb24a7469847663', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000680000A', 5, '0x0000002D000006800008', 7, '2026-11-24 21:18:23.823', '2026-11-24 16:18:23.823-05', '{id,name,amount,mail}', '{}', '0x0000000004AA', false);
INSERT INTO kept.lab_masked_history VALUES ('a79d3b0bffbfc956da2e08eef5bea05ce5df460e6ed6864bfbb24a7469847663', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000006880004', 1, '0x0000002D000006880002', 2, '2026-11-24 21:18:23.827', '2026-11-24 16:18:23.827-05', '{id,name,amount,mail}', '{}', '0x0000000004AB', false);
INSERT INTO kept.lab_masked_history VALUES ('02bdc3addcd05b86ac467774a079d37b736e242fb483f40fa31f742255caa62a', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000006900003', 1, '0x0000002D000006900002', 1, '2026-11-24 21:18:23.83', '2026-11-24 16:18:23.83-05', '{id,name,amount,mail}', '{}', '0x0000000004AC', false);
INSERT INTO kept.lab_masked_history VALUES ('a79d3b0bffbfc956da2e08eef5bea05ce5df460e6ed6864bfbb24a7469847663', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D000006980004', 1, '0x0000002D000006980002', 1, '2026-11-24 21:18:23.84', '2026-11-24 16:18:23.84-05', '{id,name,amount,mail}', '{}', '0x0000000004AD', false);
INSERT INTO kept.lab_masked_history VALUES ('76c10c84e9949cdfc9996a259116ddf6f66ef1574d781920879b5adf1b900bc9', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000006980004', 2, '0x0000002D000006980003', 2, '2026-11-24 21:18:23.84', '2026-11-24 16:18:23.84-05', '{id,name,amount,mail}', '{}', '0x0000000004AD', false);
INSERT INTO kept.lab_masked_history VALUES ('b153d18260b54ced6de3df5c37165b0ce8601be551ffa08c5e21ed3236228fb1', 'ä 3747902', 1.25, NULL, 'D', '0x0000002D00000790000A', 1, '0x0000002D000007900002', 1, '2026-11-24 21:18:24.367', '2026-11-24 16:18:24.367-05', '{id,name,amount,mail}', '{}', '0x0000000004CC', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 8722024', 5.25, NULL, 'B', '0x0000002D00000790000A', 2, '0x0000002D000007900004', 3, '2026-11-24 21:18:24.367', '2026-11-24 16:18:24.367-05', '{}', '{}', '0x0000000004CC', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 8722024', 5.25, NULL, 'U', '0x0000002D00000790000A', 2, '0x0000002D000007900004', 4, '2026-11-24 21:18:24.367', '2026-11-24 16:18:24.367-05', '{}', '{}', '0x0000000004CC', false);
INSERT INTO kept.lab_masked_history VALUES ('f34762f297a288a36c3e9d21eff11011751bd0048f50e984e8278aed4e0c0011', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D00000790000A', 4, '0x0000002D000007900007', 6, '2026-11-24 21:18:24.367', '2026-11-24 16:18:24.367-05', '{id,name,amount,mail}', '{}', '0x0000000004CC', false);
INSERT INTO kept.lab_masked_history VALUES ('f34762f297a288a36c3e9d21eff11011751bd0048f50e984e8278aed4e0c0011', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D00000790000A', 5, '0x0000002D000007900008', 7, '2026-11-24 21:18:24.367', '2026-11-24 16:18:24.367-05', '{id,name,amount,mail}', '{}', '0x0000000004CC', false);
INSERT INTO kept.lab_masked_history VALUES ('f34762f297a288a36c3e9d21eff11011751bd0048f50e984e8278aed4e0c0011', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000007980004', 1, '0x0000002D000007980002', 2, '2026-11-24 21:18:24.377', '2026-11-24 16:18:24.377-05', '{id,name,amount,mail}', '{}', '0x0000000004CD', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000007A00003', 1, '0x0000002D000007A00002', 1, '2026-11-24 21:18:24.38', '2026-11-24 16:18:24.38-05', '{id,name,amount,mail}', '{}', '0x0000000004CE', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 8722024', 5.25, NULL, 'B', '0x0000002D000008B0000A', 1, '0x0000002D000008B00002', 1, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{name,amount}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('669827e25ee29494d49445355cace52e8c69ecf45116a1d941d42c6dbed3fcaf', 'ä 6395525', 4.25, NULL, 'U', '0x0000002D000008B0000A', 1, '0x0000002D000008B00002', 2, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{name,amount}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('61cdb93d15752ddd05b5123fb4f8049c37fc3170aa38e4c98ab2ed1bd01320b5', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'B', '0x0000002D000008B0000A', 2, '0x0000002D000008B00004', 3, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{mail}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'name 9', 9.25, NULL, 'D', '0x0000002D000008B0000A', 3, '0x0000002D000008B00006', 5, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{id,name,amount,mail}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('fa33d8b6180330f9c45a56ef0e28eb5c5c0cbd37d2990b54629b2bf01fbda677', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000008B0000A', 4, '0x0000002D000008B00007', 6, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{id,name,amount,mail}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('fa33d8b6180330f9c45a56ef0e28eb5c5c0cbd37d2990b54629b2bf01fbda677', 'new', 1.50, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'D', '0x0000002D000008B0000A', 5, '0x0000002D000008B00008', 7, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{id,name,amount,mail}', '{}', '0x0000000004F0', false);
INSERT INTO kept.lab_masked_history VALUES ('fa33d8b6180330f9c45a56ef0e28eb5c5c0cbd37d2990b54629b2bf01fbda677', 'new', 7.00, 'ce432b1f7eb411e701c4706ac7434f81aacc3bd3162d263546db9e9060b90a12', 'I', '0x0000002D000008B80004', 1, '0x0000002D000008B80002', 2, '2026-11-24 21:18:24.913', '2026-11-24 16:18:24.913-05', '{id,name,amount,mail}', '{}', '0x0000000004F1', false);
INSERT INTO kept.lab_masked_history VALUES ('063ea5c6240707d6eb9b73988d3c44b6b8abc5245590c3b3d4f22ec88258c0ee', 'back', 2.00, '23fbd033b49532d7507e2f5044a6f2a1a70915bfe0ff0ed17ca438bfd9af229c', 'I', '0x0000002D000008C00003', 1, '0x0000002D000008C00002', 1, '2026-11-24 21:18:24.937', '2026-11-24 16:18:24.937-05', '{id,name,amount,mail}', '{}', '0x0000000004F2', false);


--
-- Data for Name: lab_net_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_net_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_net_history VALUES (1, 'back', NULL, 2.00, NULL, 'b@example.org', 'U', '0x0000002D000004500003', 1, '0x0000002D000004500002', 1, '2026-11-24 21:18:22.407', '2026-11-24 16:18:22.407-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000464', false);
INSERT INTO kept.lab_net_history VALUES (2, 'ä 5221642', NULL, 0.25, '2026-01-02 10:00:00', 'm2@example.org', 'U', '0x0000002D000001E0000A', 1, '0x0000002D000001E00002', 2, '2026-11-24 21:18:20.577', '2026-11-24 16:18:20.577-05', '{name,amount}', '{}', '0x000000000416', false);
INSERT INTO kept.lab_net_history VALUES (3, 'ä 7551720', '934452', -0.75, '2026-01-03 10:00:00', NULL, 'U', '0x0000002D00000660000A', 1, '0x0000002D000006600002', 2, '2026-11-24 21:18:23.77', '2026-11-24 16:18:23.77-05', '{name,note,amount,email}', '{}', '0x0000000004A6', false);
INSERT INTO kept.lab_net_history VALUES (4, 'name 4', '5221642', 4.25, '2026-01-04 10:00:00', NULL, 'U', '0x0000002D000001E0000A', 2, '0x0000002D000001E00004', 4, '2026-11-24 21:18:20.577', '2026-11-24 16:18:20.577-05', '{note,email}', '{}', '0x000000000416', false);
INSERT INTO kept.lab_net_history VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', 'U', '0x0000002D000001F00003', 1, '0x0000002D000001F00002', 1, '2026-11-24 21:18:20.58', '2026-11-24 16:18:20.58-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000418', false);
INSERT INTO kept.lab_net_history VALUES (6, 'back', NULL, 2.00, NULL, 'b@example.org', 'U', '0x0000002D000006700003', 1, '0x0000002D000006700002', 1, '2026-11-24 21:18:23.783', '2026-11-24 16:18:23.783-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004A8', false);
INSERT INTO kept.lab_net_history VALUES (7, 'ä 1681816', '5777085', 1.25, '2026-01-07 10:00:00', NULL, 'U', '0x0000002D00000440000A', 1, '0x0000002D000004400002', 2, '2026-11-24 21:18:22.393', '2026-11-24 16:18:22.393-05', '{name,note,amount,email}', '{}', '0x000000000462', false);
INSERT INTO kept.lab_net_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'U', '0x0000002D000007880003', 1, '0x0000002D000007880002', 1, '2026-11-24 21:18:24.323', '2026-11-24 16:18:24.323-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004CB', false);
INSERT INTO kept.lab_net_history VALUES (10, 'ä 5311880', NULL, -1.00, NULL, 'b@example.org', 'U', '0x0000002D00000890000A', 1, '0x0000002D000008900002', 2, '2026-11-24 21:18:24.88', '2026-11-24 16:18:24.88-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004EC', false);
INSERT INTO kept.lab_net_history VALUES (11, 'name 11', '5311880', 11.25, '2026-01-11 10:00:00', NULL, 'U', '0x0000002D00000890000A', 2, '0x0000002D000008900004', 4, '2026-11-24 21:18:24.88', '2026-11-24 16:18:24.88-05', '{note,email}', '{}', '0x0000000004EC', false);
INSERT INTO kept.lab_net_history VALUES (12, 'back', NULL, 2.00, NULL, 'b@example.org', 'U', '0x0000002D000008A00003', 1, '0x0000002D000008A00002', 1, '2026-11-24 21:18:24.887', '2026-11-24 16:18:24.887-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004EE', false);
INSERT INTO kept.lab_net_history VALUES (934453, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000005680004', 2, '0x0000002D000005680003', 2, '2026-11-24 21:18:23.34', '2026-11-24 16:18:23.34-05', NULL, '{}', '0x000000000487', false);
INSERT INTO kept.lab_net_history VALUES (1681817, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000004580004', 2, '0x0000002D000004580003', 2, '2026-11-24 21:18:22.41', '2026-11-24 16:18:22.41-05', NULL, '{}', '0x000000000465', false);
INSERT INTO kept.lab_net_history VALUES (5072295, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003180004', 1, '0x0000002D000003180002', 2, '2026-11-24 21:18:21.507', '2026-11-24 16:18:21.507-05', NULL, '{}', '0x00000000043D', false);
INSERT INTO kept.lab_net_history VALUES (5221643, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000001F80004', 2, '0x0000002D000001F80003', 2, '2026-11-24 21:18:20.583', '2026-11-24 16:18:20.583-05', NULL, '{}', '0x000000000419', false);
INSERT INTO kept.lab_net_history VALUES (5311881, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000008A80004', 2, '0x0000002D000008A80003', 2, '2026-11-24 21:18:24.89', '2026-11-24 16:18:24.89-05', NULL, '{}', '0x0000000004EF', false);
INSERT INTO kept.lab_net_history VALUES (5777085, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000000C80004', 1, '0x0000002D000000C80002', 2, '2026-11-24 21:18:19.957', '2026-11-24 16:18:19.957-05', NULL, '{}', '0x0000000003F3', false);
INSERT INTO kept.lab_net_history VALUES (6756025, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007800004', 1, '0x0000002D000007800002', 2, '2026-11-24 21:18:24.32', '2026-11-24 16:18:24.32-05', NULL, '{}', '0x0000000004CA', false);
INSERT INTO kept.lab_net_history VALUES (7551721, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000006780004', 2, '0x0000002D000006780003', 2, '2026-11-24 21:18:23.787', '2026-11-24 16:18:23.787-05', NULL, '{}', '0x0000000004A9', false);


--
-- Data for Name: lab_plain; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_plain VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org');
INSERT INTO kept.lab_plain VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org');
INSERT INTO kept.lab_plain VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org');
INSERT INTO kept.lab_plain VALUES (1, 'name 1', '9789891', 1.25, '2026-01-01 10:00:00', NULL);
INSERT INTO kept.lab_plain VALUES (3, 'ä 9789891', NULL, 0.00, NULL, 'b@example.org');
INSERT INTO kept.lab_plain VALUES (4, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_plain VALUES (7, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_plain VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_plain VALUES (9, 'ä 5516032', '2505876', -4.00, NULL, NULL);
INSERT INTO kept.lab_plain VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org');
INSERT INTO kept.lab_plain VALUES (11, 'ä 2505876', '7465901', 7.25, '2026-01-11 10:00:00', NULL);
INSERT INTO kept.lab_plain VALUES (12, 'ä 5617180', '5516032', 10.25, '2026-01-12 10:00:00', NULL);
INSERT INTO kept.lab_plain VALUES (606961, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (1371099, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (1675655, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (2505877, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (5516033, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (5617181, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (7465901, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');
INSERT INTO kept.lab_plain VALUES (9789891, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org');


--
-- Data for Name: lab_plain_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (5, 'name 5', NULL, 5.25, '2026-01-05 10:00:00', 'm5@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'R', '0x0000002D000000680001', NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 'B', '0x0000002D00000070000A', 2, '0x0000002D000000700004', 3, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{note,email}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', '606960', 1.25, '2026-01-01 10:00:00', NULL, 'U', '0x0000002D00000070000A', 2, '0x0000002D000000700004', 4, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{note,email}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', '606960', 1.25, '2026-01-01 10:00:00', NULL, 'B', '0x0000002D000002B0000A', 2, '0x0000002D000002B00004', 3, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{note}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', '1371098', 1.25, '2026-01-01 10:00:00', NULL, 'U', '0x0000002D000002B0000A', 2, '0x0000002D000002B00004', 4, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{note}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', '1371098', 1.25, '2026-01-01 10:00:00', NULL, 'B', '0x0000002D00000508000A', 2, '0x0000002D000005080004', 3, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{note}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (1, 'name 1', '9789891', 1.25, '2026-01-01 10:00:00', NULL, 'U', '0x0000002D00000508000A', 2, '0x0000002D000005080004', 4, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{note}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', 'D', '0x0000002D00000190000A', 3, '0x0000002D000001900006', 5, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000001A00003', 1, '0x0000002D000001A00002', 1, '2026-11-24 21:18:20.427', '2026-11-24 16:18:20.427-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040E', false);
INSERT INTO kept.lab_plain_history VALUES (3, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D00000508000A', 1, '0x0000002D000005080002', 1, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{name,amount}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (3, 'ä 9789891', NULL, 0.00, NULL, 'b@example.org', 'U', '0x0000002D00000508000A', 1, '0x0000002D000005080002', 2, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{name,amount}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 'B', '0x0000002D00000070000A', 1, '0x0000002D000000700002', 1, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{name,amount}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (4, 'ä 606960', NULL, 2.25, '2026-01-04 10:00:00', 'm4@example.org', 'U', '0x0000002D00000070000A', 1, '0x0000002D000000700002', 2, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{name,amount}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (4, 'ä 606960', NULL, 2.25, '2026-01-04 10:00:00', 'm4@example.org', 'D', '0x0000002D00000728000A', 3, '0x0000002D000007280006', 5, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (4, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000007380003', 1, '0x0000002D000007380002', 1, '2026-11-24 21:18:24.15', '2026-11-24 16:18:24.15-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004C1', false);
INSERT INTO kept.lab_plain_history VALUES (7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 'D', '0x0000002D000003E0000A', 3, '0x0000002D000003E00006', 5, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (7, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000003F00003', 1, '0x0000002D000003F00002', 1, '2026-11-24 21:18:22.1', '2026-11-24 16:18:22.1-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000458', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 'B', '0x0000002D00000190000A', 2, '0x0000002D000001900004', 3, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{note,email}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'name 8', '1675655', 8.25, '2026-01-08 10:00:00', NULL, 'U', '0x0000002D00000190000A', 2, '0x0000002D000001900004', 4, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{note,email}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'name 8', '1675655', 8.25, '2026-01-08 10:00:00', NULL, 'D', '0x0000002D000002B0000A', 3, '0x0000002D000002B00006', 5, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000002C00003', 1, '0x0000002D000002C00002', 1, '2026-11-24 21:18:21.247', '2026-11-24 16:18:21.247-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000432', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'D', '0x0000002D00000508000A', 3, '0x0000002D000005080006', 5, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000005180003', 1, '0x0000002D000005180002', 1, '2026-11-24 21:18:23.143', '2026-11-24 16:18:23.143-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000047D', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'D', '0x0000002D00000618000A', 3, '0x0000002D000006180006', 5, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (8, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000006280003', 1, '0x0000002D000006280002', 1, '2026-11-24 21:18:23.67', '2026-11-24 16:18:23.67-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049F', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002B0000A', 5, '0x0000002D000002B00008', 8, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{note,amount}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 'D', '0x0000002D00000070000A', 3, '0x0000002D000000700006', 5, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000000800003', 1, '0x0000002D000000800002', 1, '2026-11-24 21:18:19.667', '2026-11-24 16:18:19.667-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003EA', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'back', NULL, 2.00, NULL, 'b@example.org', 'B', '0x0000002D00000190000A', 1, '0x0000002D000001900002', 1, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{name,amount}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1675655', NULL, 1.00, NULL, 'b@example.org', 'U', '0x0000002D00000190000A', 1, '0x0000002D000001900002', 2, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{name,amount}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1675655', NULL, 1.00, NULL, 'b@example.org', 'B', '0x0000002D000002B0000A', 1, '0x0000002D000002B00002', 1, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{name,amount}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1371098', NULL, -3.00, NULL, 'b@example.org', 'U', '0x0000002D000002B0000A', 1, '0x0000002D000002B00002', 2, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{name,amount}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1371098', NULL, -3.00, NULL, 'b@example.org', 'B', '0x0000002D00000728000A', 2, '0x0000002D000007280004', 3, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{note,email}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1371098', '2505876', -3.00, NULL, NULL, 'U', '0x0000002D00000728000A', 2, '0x0000002D000007280004', 4, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{note,email}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 1371098', '2505876', -3.00, NULL, NULL, 'B', '0x0000002D00000830000A', 1, '0x0000002D000008300002', 1, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{name,amount}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (9, 'ä 5516032', '2505876', -4.00, NULL, NULL, 'U', '0x0000002D00000830000A', 1, '0x0000002D000008300002', 2, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{name,amount}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 'B', '0x0000002D000003E0000A', 2, '0x0000002D000003E00004', 3, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{note,email}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'name 10', '5617180', 10.25, '2026-01-10 10:00:00', NULL, 'U', '0x0000002D000003E0000A', 2, '0x0000002D000003E00004', 4, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{note,email}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'name 10', '5617180', 10.25, '2026-01-10 10:00:00', NULL, 'B', '0x0000002D00000618000A', 1, '0x0000002D000006180002', 1, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{name,amount}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'ä 7465901', '5617180', 9.25, '2026-01-10 10:00:00', NULL, 'U', '0x0000002D00000618000A', 1, '0x0000002D000006180002', 2, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{name,amount}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'ä 7465901', '5617180', 9.25, '2026-01-10 10:00:00', NULL, 'D', '0x0000002D00000830000A', 3, '0x0000002D000008300006', 5, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (10, 'back', NULL, 2.00, NULL, 'b@example.org', 'I', '0x0000002D000008400003', 1, '0x0000002D000008400002', 1, '2026-11-24 21:18:24.743', '2026-11-24 16:18:24.743-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004E2', false);
INSERT INTO kept.lab_plain_history VALUES (11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', 'B', '0x0000002D00000618000A', 2, '0x0000002D000006180004', 3, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{note,email}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (11, 'name 11', '7465901', 11.25, '2026-01-11 10:00:00', NULL, 'U', '0x0000002D00000618000A', 2, '0x0000002D000006180004', 4, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{note,email}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (11, 'name 11', '7465901', 11.25, '2026-01-11 10:00:00', NULL, 'B', '0x0000002D00000728000A', 1, '0x0000002D000007280002', 1, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{name,amount}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (11, 'ä 2505876', '7465901', 7.25, '2026-01-11 10:00:00', NULL, 'U', '0x0000002D00000728000A', 1, '0x0000002D000007280002', 2, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{name,amount}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 'B', '0x0000002D000003E0000A', 1, '0x0000002D000003E00002', 1, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{name,amount}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (12, 'ä 5617180', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 10.25, '2026-01-12 10:00:00', 'm12@example.org', 'U', '0x0000002D000003E0000A', 1, '0x0000002D000003E00002', 2, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{name,amount}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (12, 'ä 5617180', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 10.25, '2026-01-12 10:00:00', 'm12@example.org', 'B', '0x0000002D00000830000A', 2, '0x0000002D000008300004', 3, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{note,email}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (12, 'ä 5617180', '5516032', 10.25, '2026-01-12 10:00:00', NULL, 'U', '0x0000002D00000830000A', 2, '0x0000002D000008300004', 4, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{note,email}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000070000A', 4, '0x0000002D000000700007', 6, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000070000A', 5, '0x0000002D000000700008', 7, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{note,amount}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000070000A', 5, '0x0000002D000000700008', 8, '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', '{note,amount}', '{}', '0x0000000003E8', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000000780004', 1, '0x0000002D000000780002', 1, '2026-11-24 21:18:19.657', '2026-11-24 16:18:19.657-05', '{amount}', '{}', '0x0000000003E9', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000000780004', 1, '0x0000002D000000780002', 2, '2026-11-24 21:18:19.657', '2026-11-24 16:18:19.657-05', '{amount}', '{}', '0x0000000003E9', false);
INSERT INTO kept.lab_plain_history VALUES (606960, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000000880004', 1, '0x0000002D000000880002', 1, '2026-11-24 21:18:19.67', '2026-11-24 16:18:19.67-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003EB', false);
INSERT INTO kept.lab_plain_history VALUES (606961, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000000880004', 2, '0x0000002D000000880003', 2, '2026-11-24 21:18:19.67', '2026-11-24 16:18:19.67-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000003EB', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000002B0000A', 4, '0x0000002D000002B00007', 6, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002B0000A', 5, '0x0000002D000002B00008', 7, '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', '{note,amount}', '{}', '0x000000000430', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000002B80004', 1, '0x0000002D000002B80002', 1, '2026-11-24 21:18:21.237', '2026-11-24 16:18:21.237-05', '{amount}', '{}', '0x000000000431', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000002B80004', 1, '0x0000002D000002B80002', 2, '2026-11-24 21:18:21.237', '2026-11-24 16:18:21.237-05', '{amount}', '{}', '0x000000000431', false);
INSERT INTO kept.lab_plain_history VALUES (1371098, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000002C80004', 1, '0x0000002D000002C80002', 1, '2026-11-24 21:18:21.257', '2026-11-24 16:18:21.257-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000433', false);
INSERT INTO kept.lab_plain_history VALUES (1371099, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000002C80004', 2, '0x0000002D000002C80003', 2, '2026-11-24 21:18:21.257', '2026-11-24 16:18:21.257-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000433', false);
INSERT INTO kept.lab_plain_history VALUES (1675655, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000190000A', 4, '0x0000002D000001900007', 6, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (1675655, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000190000A', 5, '0x0000002D000001900008', 7, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{note,amount}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (1675655, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000190000A', 5, '0x0000002D000001900008', 8, '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', '{note,amount}', '{}', '0x00000000040C', false);
INSERT INTO kept.lab_plain_history VALUES (1675655, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000001980004', 1, '0x0000002D000001980002', 1, '2026-11-24 21:18:20.417', '2026-11-24 16:18:20.417-05', '{amount}', '{}', '0x00000000040D', false);
INSERT INTO kept.lab_plain_history VALUES (1675655, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000001980004', 1, '0x0000002D000001980002', 2, '2026-11-24 21:18:20.417', '2026-11-24 16:18:20.417-05', '{amount}', '{}', '0x00000000040D', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000728000A', 4, '0x0000002D000007280007', 6, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000728000A', 5, '0x0000002D000007280008', 7, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{note,amount}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000728000A', 5, '0x0000002D000007280008', 8, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{note,amount}', '{}', '0x0000000004BF', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000007300004', 1, '0x0000002D000007300002', 1, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{amount}', '{}', '0x0000000004C0', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000007300004', 1, '0x0000002D000007300002', 2, '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', '{amount}', '{}', '0x0000000004C0', false);
INSERT INTO kept.lab_plain_history VALUES (2505876, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000007400004', 1, '0x0000002D000007400002', 1, '2026-11-24 21:18:24.16', '2026-11-24 16:18:24.16-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004C2', false);
INSERT INTO kept.lab_plain_history VALUES (2505877, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000007400004', 2, '0x0000002D000007400003', 2, '2026-11-24 21:18:24.16', '2026-11-24 16:18:24.16-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004C2', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000830000A', 4, '0x0000002D000008300007', 6, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000830000A', 5, '0x0000002D000008300008', 7, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{note,amount}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000830000A', 5, '0x0000002D000008300008', 8, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{note,amount}', '{}', '0x0000000004E0', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000008380004', 1, '0x0000002D000008380002', 1, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{amount}', '{}', '0x0000000004E1', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000008380004', 1, '0x0000002D000008380002', 2, '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', '{amount}', '{}', '0x0000000004E1', false);
INSERT INTO kept.lab_plain_history VALUES (5516032, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000008480004', 1, '0x0000002D000008480002', 1, '2026-11-24 21:18:24.747', '2026-11-24 16:18:24.747-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004E3', false);
INSERT INTO kept.lab_plain_history VALUES (5516033, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000008480004', 2, '0x0000002D000008480003', 2, '2026-11-24 21:18:24.747', '2026-11-24 16:18:24.747-05', '{id,name,note,amount,seen,email}', '{}', '0x0000000004E3', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003E0000A', 4, '0x0000002D000003E00007', 6, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003E0000A', 5, '0x0000002D000003E00008', 7, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{note,amount}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003E0000A', 5, '0x0000002D000003E00008', 8, '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', '{note,amount}', '{}', '0x000000000456', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000003E80004', 1, '0x0000002D000003E80002', 1, '2026-11-24 21:18:22.09', '2026-11-24 16:18:22.09-05', '{amount}', '{}', '0x000000000457', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000003E80004', 1, '0x0000002D000003E80002', 2, '2026-11-24 21:18:22.09', '2026-11-24 16:18:22.09-05', '{amount}', '{}', '0x000000000457', false);
INSERT INTO kept.lab_plain_history VALUES (5617180, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'D', '0x0000002D000003F80004', 1, '0x0000002D000003F80002', 1, '2026-11-24 21:18:22.117', '2026-11-24 16:18:22.117-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000459', false);
INSERT INTO kept.lab_plain_history VALUES (5617181, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D000003F80004', 2, '0x0000002D000003F80003', 2, '2026-11-24 21:18:22.117', '2026-11-24 16:18:22.117-05', '{id,name,note,amount,seen,email}', '{}', '0x000000000459', false);
INSERT INTO kept.lab_plain_history VALUES (7465901, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000618000A', 4, '0x0000002D000006180007', 6, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (7465901, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000618000A', 5, '0x0000002D000006180008', 7, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{note,amount}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (7465901, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000618000A', 5, '0x0000002D000006180008', 8, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{note,amount}', '{}', '0x00000000049D', false);
INSERT INTO kept.lab_plain_history VALUES (7465901, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000006200004', 1, '0x0000002D000006200002', 1, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{amount}', '{}', '0x00000000049E', false);
INSERT INTO kept.lab_plain_history VALUES (7465901, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000006200004', 1, '0x0000002D000006200002', 2, '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', '{amount}', '{}', '0x00000000049E', false);
INSERT INTO kept.lab_plain_history VALUES (9789891, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'I', '0x0000002D00000508000A', 4, '0x0000002D000005080007', 6, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{id,name,note,amount,seen,email}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (9789891, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D00000508000A', 5, '0x0000002D000005080008', 7, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{note,amount}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (9789891, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D00000508000A', 5, '0x0000002D000005080008', 8, '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', '{note,amount}', '{}', '0x00000000047B', false);
INSERT INTO kept.lab_plain_history VALUES (9789891, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 'B', '0x0000002D000005100004', 1, '0x0000002D000005100002', 1, '2026-11-24 21:18:23.137', '2026-11-24 16:18:23.137-05', '{amount}', '{}', '0x00000000047C', false);
INSERT INTO kept.lab_plain_history VALUES (9789891, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 'U', '0x0000002D000005100004', 1, '0x0000002D000005100002', 2, '2026-11-24 21:18:23.137', '2026-11-24 16:18:23.137-05', '{amount}', '{}', '0x00000000047C', false);


--
-- Data for Name: lab_plain_transactions; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000070000A', '2026-11-24 21:18:19.653', '2026-11-24 16:18:19.653-05', 'lab', 'plain', 5, 1, 3, 1, '0x0000000003E8');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000000780004', '2026-11-24 21:18:19.657', '2026-11-24 16:18:19.657-05', 'lab', 'plain', 1, 0, 1, 0, '0x0000000003E9');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000000800003', '2026-11-24 21:18:19.667', '2026-11-24 16:18:19.667-05', 'lab', 'plain', 1, 1, 0, 0, '0x0000000003EA');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000000880004', '2026-11-24 21:18:19.67', '2026-11-24 16:18:19.67-05', 'lab', 'plain', 2, 1, 0, 1, '0x0000000003EB');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000190000A', '2026-11-24 21:18:20.413', '2026-11-24 16:18:20.413-05', 'lab', 'plain', 5, 1, 3, 1, '0x00000000040C');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000001980004', '2026-11-24 21:18:20.417', '2026-11-24 16:18:20.417-05', 'lab', 'plain', 1, 0, 1, 0, '0x00000000040D');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000001A00003', '2026-11-24 21:18:20.427', '2026-11-24 16:18:20.427-05', 'lab', 'plain', 1, 1, 0, 0, '0x00000000040E');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000002B0000A', '2026-11-24 21:18:21.227', '2026-11-24 16:18:21.227-05', 'lab', 'plain', 5, 1, 3, 1, '0x000000000430');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000002B80004', '2026-11-24 21:18:21.237', '2026-11-24 16:18:21.237-05', 'lab', 'plain', 1, 0, 1, 0, '0x000000000431');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000002C00003', '2026-11-24 21:18:21.247', '2026-11-24 16:18:21.247-05', 'lab', 'plain', 1, 1, 0, 0, '0x000000000432');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000002C80004', '2026-11-24 21:18:21.257', '2026-11-24 16:18:21.257-05', 'lab', 'plain', 2, 1, 0, 1, '0x000000000433');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000003E0000A', '2026-11-24 21:18:22.087', '2026-11-24 16:18:22.087-05', 'lab', 'plain', 5, 1, 3, 1, '0x000000000456');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000003E80004', '2026-11-24 21:18:22.09', '2026-11-24 16:18:22.09-05', 'lab', 'plain', 1, 0, 1, 0, '0x000000000457');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000003F00003', '2026-11-24 21:18:22.1', '2026-11-24 16:18:22.1-05', 'lab', 'plain', 1, 1, 0, 0, '0x000000000458');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000003F80004', '2026-11-24 21:18:22.117', '2026-11-24 16:18:22.117-05', 'lab', 'plain', 2, 1, 0, 1, '0x000000000459');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000508000A', '2026-11-24 21:18:23.133', '2026-11-24 16:18:23.133-05', 'lab', 'plain', 5, 1, 3, 1, '0x00000000047B');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000005100004', '2026-11-24 21:18:23.137', '2026-11-24 16:18:23.137-05', 'lab', 'plain', 1, 0, 1, 0, '0x00000000047C');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000005180003', '2026-11-24 21:18:23.143', '2026-11-24 16:18:23.143-05', 'lab', 'plain', 1, 1, 0, 0, '0x00000000047D');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000618000A', '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', 'lab', 'plain', 5, 1, 3, 1, '0x00000000049D');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000006200004', '2026-11-24 21:18:23.667', '2026-11-24 16:18:23.667-05', 'lab', 'plain', 1, 0, 1, 0, '0x00000000049E');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000006280003', '2026-11-24 21:18:23.67', '2026-11-24 16:18:23.67-05', 'lab', 'plain', 1, 1, 0, 0, '0x00000000049F');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000728000A', '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', 'lab', 'plain', 5, 1, 3, 1, '0x0000000004BF');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000007300004', '2026-11-24 21:18:24.143', '2026-11-24 16:18:24.143-05', 'lab', 'plain', 1, 0, 1, 0, '0x0000000004C0');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000007380003', '2026-11-24 21:18:24.15', '2026-11-24 16:18:24.15-05', 'lab', 'plain', 1, 1, 0, 0, '0x0000000004C1');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000007400004', '2026-11-24 21:18:24.16', '2026-11-24 16:18:24.16-05', 'lab', 'plain', 2, 1, 0, 1, '0x0000000004C2');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D00000830000A', '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', 'lab', 'plain', 5, 1, 3, 1, '0x0000000004E0');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000008380004', '2026-11-24 21:18:24.73', '2026-11-24 16:18:24.73-05', 'lab', 'plain', 1, 0, 1, 0, '0x0000000004E1');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000008400003', '2026-11-24 21:18:24.743', '2026-11-24 16:18:24.743-05', 'lab', 'plain', 1, 1, 0, 0, '0x0000000004E2');
INSERT INTO kept.lab_plain_transactions VALUES ('0x0000002D000008480004', '2026-11-24 21:18:24.747', '2026-11-24 16:18:24.747-05', 'lab', 'plain', 2, 1, 0, 1, '0x0000000004E3');


--
-- Data for Name: lab_soft; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_soft VALUES (3, 'name 3', '33333333333333333333333333333333333333333333333333', 3.25, '2026-01-03 10:00:00', 'm3@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (1, 'name 1', '1009096', 1.25, '2026-01-01 10:00:00', NULL, NULL);
INSERT INTO kept.lab_soft VALUES (2, 'ä 3442075', '3634423', 1.00, NULL, NULL, NULL);
INSERT INTO kept.lab_soft VALUES (4, 'back', NULL, 2.00, NULL, 'b@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (5, 'back', NULL, 2.00, NULL, 'b@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (6, 'ä 4393763', '66666666666666666666666666666666666666666666666666', -1.75, '2026-01-06 10:00:00', 'm6@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (7, 'ä 7862856', NULL, 4.25, '2026-01-07 10:00:00', 'm7@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (8, 'back', '4393763', 2.00, NULL, NULL, NULL);
INSERT INTO kept.lab_soft VALUES (9, 'ä 3634423', '99999999999999999999999999999999999999999999999999', 5.25, '2026-01-09 10:00:00', 'm9@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (10, 'ä 1009096', '4288696', 8.25, '2026-01-10 10:00:00', NULL, NULL);
INSERT INTO kept.lab_soft VALUES (11, 'back', NULL, 2.00, NULL, 'b@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (12, 'back', '3442075', 2.00, NULL, NULL, NULL);
INSERT INTO kept.lab_soft VALUES (1009096, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', '2026-11-24 21:18:24.807');
INSERT INTO kept.lab_soft VALUES (1009097, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (2470437, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (3442075, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (3634423, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (4288696, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', '2026-11-24 21:18:21.35');
INSERT INTO kept.lab_soft VALUES (4288697, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (4393763, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (5764754, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', '2026-11-24 21:18:22.207');
INSERT INTO kept.lab_soft VALUES (5764755, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);
INSERT INTO kept.lab_soft VALUES (7862856, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', '2026-11-24 21:18:20.483');
INSERT INTO kept.lab_soft VALUES (7862857, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL);


--
-- Data for Name: lab_wide_history; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000002f0:000a', '2026-11-24 21:18:21.417', 1, 'name 1', NULL, 1.25, '2026-01-01 10:00:00', 'm1@example.org', 1, 'name 1', '5588602', 1.25, '2026-01-01 10:00:00', NULL, 2, '0x0000002D000002F00004', 4, '2026-11-24 16:18:21.417-05', '{}', '0x000000000438', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000870:000a', '2026-11-24 21:18:24.83', 1, 'name 1', '5588602', 1.25, '2026-01-01 10:00:00', NULL, 1, 'ä 5531788', '5588602', -1.75, '2026-01-01 10:00:00', NULL, 1, '0x0000002D000008700002', 2, '2026-11-24 16:18:24.83-05', '{}', '0x0000000004E8', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000000a8:000a', '2026-11-24 21:18:19.803', 2, 'name 2', NULL, 2.25, '2026-01-02 10:00:00', 'm2@example.org', 2, 'name 2', '7823735', 2.25, '2026-01-02 10:00:00', NULL, 2, '0x0000002D000000A80004', 4, '2026-11-24 16:18:19.803-05', '{}', '0x0000000003EF', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000000a8:000a', '2026-11-24 21:18:19.803', 4, 'name 4', NULL, 4.25, '2026-01-04 10:00:00', 'm4@example.org', 4, 'ä 7823735', NULL, 1.25, '2026-01-04 10:00:00', 'm4@example.org', 1, '0x0000002D000000A80002', 2, '2026-11-24 16:18:19.803-05', '{before_note,after_note}', '0x0000000003EF', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:000001c8:000a', '2026-11-24 21:18:20.527', 4, 'ä 7823735', NULL, 1.25, '2026-01-04 10:00:00', 'm4@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000001C80006', 5, '2026-11-24 16:18:20.527-05', '{}', '0x000000000413', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:000001d8:0003', '2026-11-24 21:18:20.537', NULL, NULL, NULL, NULL, NULL, NULL, 4, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000001D80002', 1, '2026-11-24 16:18:20.537-05', '{}', '0x000000000415', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000760:000a', '2026-11-24 21:18:24.287', 4, 'back', NULL, 2.00, NULL, 'b@example.org', 4, 'back', '4810999', 2.00, NULL, NULL, 2, '0x0000002D000007600004', 4, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C6', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:000000a8:000a', '2026-11-24 21:18:19.803', 6, 'name 6', '66666666666666666666666666666666666666666666666666', 6.25, '2026-01-06 10:00:00', 'm6@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000000A80006', 5, '2026-11-24 16:18:19.803-05', '{}', '0x0000000003EF', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:000000b8:0003', '2026-11-24 21:18:19.82', NULL, NULL, NULL, NULL, NULL, NULL, 6, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000000B80002', 1, '2026-11-24 16:18:19.82-05', '{}', '0x0000000003F1', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000870:000a', '2026-11-24 21:18:24.83', 6, 'back', NULL, 2.00, NULL, 'b@example.org', 6, 'back', '5531788', 2.00, NULL, NULL, 2, '0x0000002D000008700004', 4, '2026-11-24 16:18:24.83-05', '{}', '0x0000000004E8', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000001c8:000a', '2026-11-24 21:18:20.527', 7, 'name 7', NULL, 7.25, '2026-01-07 10:00:00', 'm7@example.org', 7, 'ä 3006689', NULL, 4.25, '2026-01-07 10:00:00', 'm7@example.org', 1, '0x0000002D000001C80002', 2, '2026-11-24 16:18:20.527-05', '{before_note,after_note}', '0x000000000413', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000648:000a', '2026-11-24 21:18:23.737', 7, 'ä 3006689', NULL, 4.25, '2026-01-07 10:00:00', 'm7@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000006480006', 5, '2026-11-24 16:18:23.737-05', '{}', '0x0000000004A3', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000658:0003', '2026-11-24 21:18:23.743', NULL, NULL, NULL, NULL, NULL, NULL, 7, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000006580002', 1, '2026-11-24 16:18:23.743-05', '{}', '0x0000000004A5', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000760:000a', '2026-11-24 21:18:24.287', 7, 'back', NULL, 2.00, NULL, 'b@example.org', 7, 'ä 4810999', NULL, -2.00, NULL, 'b@example.org', 1, '0x0000002D000007600002', 2, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C6', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000870:000a', '2026-11-24 21:18:24.83', 7, 'ä 4810999', NULL, -2.00, NULL, 'b@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000008700006', 5, '2026-11-24 16:18:24.83-05', '{}', '0x0000000004E8', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000880:0003', '2026-11-24 21:18:24.837', NULL, NULL, NULL, NULL, NULL, NULL, 7, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000008800002', 1, '2026-11-24 16:18:24.837-05', '{}', '0x0000000004EA', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000538:000a', '2026-11-24 21:18:23.277', 8, 'name 8', NULL, 8.25, '2026-01-08 10:00:00', 'm8@example.org', 8, 'name 8', '2706401', 8.25, '2026-01-08 10:00:00', NULL, 2, '0x0000002D000005380004', 4, '2026-11-24 16:18:23.277-05', '{}', '0x000000000481', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000648:000a', '2026-11-24 21:18:23.737', 8, 'name 8', '2706401', 8.25, '2026-01-08 10:00:00', NULL, 8, 'ä 8422873', '2706401', 7.25, '2026-01-08 10:00:00', NULL, 1, '0x0000002D000006480002', 2, '2026-11-24 16:18:23.737-05', '{}', '0x0000000004A3', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000001c8:000a', '2026-11-24 21:18:20.527', 9, 'name 9', '99999999999999999999999999999999999999999999999999', 9.25, '2026-01-09 10:00:00', 'm9@example.org', 9, 'name 9', '3006689', 9.25, '2026-01-09 10:00:00', NULL, 2, '0x0000002D000001C80004', 4, '2026-11-24 16:18:20.527-05', '{}', '0x000000000413', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000420:000a', '2026-11-24 21:18:22.273', 9, 'name 9', '3006689', 9.25, '2026-01-09 10:00:00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000004200006', 5, '2026-11-24 16:18:22.273-05', '{}', '0x00000000045E', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000430:0003', '2026-11-24 21:18:22.303', NULL, NULL, NULL, NULL, NULL, NULL, 9, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000004300002', 1, '2026-11-24 16:18:22.303-05', '{}', '0x000000000460', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000538:000a', '2026-11-24 21:18:23.277', 9, 'back', NULL, 2.00, NULL, 'b@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000005380006', 5, '2026-11-24 16:18:23.277-05', '{}', '0x000000000481', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000548:0003', '2026-11-24 21:18:23.283', NULL, NULL, NULL, NULL, NULL, NULL, 9, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000005480002', 1, '2026-11-24 16:18:23.283-05', '{}', '0x000000000483', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000002f0:000a', '2026-11-24 21:18:21.417', 10, 'name 10', NULL, 10.25, '2026-01-10 10:00:00', 'm10@example.org', 10, 'ä 5588602', NULL, 6.25, '2026-01-10 10:00:00', 'm10@example.org', 1, '0x0000002D000002F00002', 2, '2026-11-24 16:18:21.417-05', '{before_note,after_note}', '0x000000000438', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000420:000a', '2026-11-24 21:18:22.273', 10, 'ä 5588602', NULL, 6.25, '2026-01-10 10:00:00', 'm10@example.org', 10, 'ä 5588602', '8123738', 6.25, '2026-01-10 10:00:00', NULL, 2, '0x0000002D000004200004', 4, '2026-11-24 16:18:22.273-05', '{}', '0x00000000045E', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000760:000a', '2026-11-24 21:18:24.287', 10, 'ä 5588602', '8123738', 6.25, '2026-01-10 10:00:00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000007600006', 5, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C6', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000770:0003', '2026-11-24 21:18:24.293', NULL, NULL, NULL, NULL, NULL, NULL, 10, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000007700002', 1, '2026-11-24 16:18:24.293-05', '{}', '0x0000000004C8', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:000002f0:000a', '2026-11-24 21:18:21.417', 11, 'name 11', NULL, 11.25, '2026-01-11 10:00:00', 'm11@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 3, '0x0000002D000002F00006', 5, '2026-11-24 16:18:21.417-05', '{}', '0x000000000438', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000300:0003', '2026-11-24 21:18:21.43', NULL, NULL, NULL, NULL, NULL, NULL, 11, 'back', NULL, 2.00, NULL, 'b@example.org', 1, '0x0000002D000003000002', 1, '2026-11-24 16:18:21.43-05', '{}', '0x00000000043A', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000420:000a', '2026-11-24 21:18:22.273', 12, 'name 12', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 12.25, '2026-01-12 10:00:00', 'm12@example.org', 12, 'ä 8123738', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 11.25, '2026-01-12 10:00:00', 'm12@example.org', 1, '0x0000002D000004200002', 2, '2026-11-24 16:18:22.273-05', '{}', '0x00000000045E', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000538:000a', '2026-11-24 21:18:23.277', 12, 'ä 8123738', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 11.25, '2026-01-12 10:00:00', 'm12@example.org', 12, 'ä 2706401', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 9.25, '2026-01-12 10:00:00', 'm12@example.org', 1, '0x0000002D000005380002', 2, '2026-11-24 16:18:23.277-05', '{}', '0x000000000481', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000648:000a', '2026-11-24 21:18:23.737', 12, 'ä 2706401', '1212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212121212', 9.25, '2026-01-12 10:00:00', 'm12@example.org', 12, 'ä 2706401', '8422873', 9.25, '2026-01-12 10:00:00', NULL, 2, '0x0000002D000006480004', 4, '2026-11-24 16:18:23.737-05', '{}', '0x0000000004A3', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000538:000a', '2026-11-24 21:18:23.277', NULL, NULL, NULL, NULL, NULL, NULL, 2706401, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000005380007', 6, '2026-11-24 16:18:23.277-05', '{}', '0x000000000481', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000538:000a', '2026-11-24 21:18:23.277', 2706401, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 2706401, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000005380008', 8, '2026-11-24 16:18:23.277-05', '{}', '0x000000000481', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000540:0004', '2026-11-24 21:18:23.28', 2706401, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 2706401, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000005400002', 2, '2026-11-24 16:18:23.28-05', '{}', '0x000000000482', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:000001c8:000a', '2026-11-24 21:18:20.527', NULL, NULL, NULL, NULL, NULL, NULL, 3006689, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000001C80007', 6, '2026-11-24 16:18:20.527-05', '{}', '0x000000000413', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000001c8:000a', '2026-11-24 21:18:20.527', 3006689, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 3006689, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000001C80008', 8, '2026-11-24 16:18:20.527-05', '{}', '0x000000000413', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000001d0:0004', '2026-11-24 21:18:20.527', 3006689, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 3006689, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000001D00002', 2, '2026-11-24 16:18:20.527-05', '{}', '0x000000000414', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000760:000a', '2026-11-24 21:18:24.287', NULL, NULL, NULL, NULL, NULL, NULL, 4810999, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000007600007', 6, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C6', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000760:000a', '2026-11-24 21:18:24.287', 4810999, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4810999, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000007600008', 8, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C6', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000768:0004', '2026-11-24 21:18:24.287', 4810999, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 4810999, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000007680002', 2, '2026-11-24 16:18:24.287-05', '{}', '0x0000000004C7', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000870:000a', '2026-11-24 21:18:24.83', NULL, NULL, NULL, NULL, NULL, NULL, 5531788, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000008700007', 6, '2026-11-24 16:18:24.83-05', '{}', '0x0000000004E8', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000870:000a', '2026-11-24 21:18:24.83', 5531788, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 5531788, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000008700008', 8, '2026-11-24 16:18:24.83-05', '{}', '0x0000000004E8', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000878:0004', '2026-11-24 21:18:24.833', 5531788, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5531788, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000008780002', 2, '2026-11-24 16:18:24.833-05', '{}', '0x0000000004E9', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000888:0004', '2026-11-24 21:18:24.84', 5531788, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 1, '0x0000002D000008880002', 1, '2026-11-24 16:18:24.84-05', '{}', '0x0000000004EB', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000888:0004', '2026-11-24 21:18:24.84', NULL, NULL, NULL, NULL, NULL, NULL, 5531789, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 2, '0x0000002D000008880003', 2, '2026-11-24 16:18:24.84-05', '{}', '0x0000000004EB', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:000002f0:000a', '2026-11-24 21:18:21.417', NULL, NULL, NULL, NULL, NULL, NULL, 5588602, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000002F00007', 6, '2026-11-24 16:18:21.417-05', '{}', '0x000000000438', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000002f0:000a', '2026-11-24 21:18:21.417', 5588602, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 5588602, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000002F00008', 8, '2026-11-24 16:18:21.417-05', '{}', '0x000000000438', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000002f8:0004', '2026-11-24 21:18:21.42', 5588602, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5588602, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000002F80002', 2, '2026-11-24 16:18:21.42-05', '{}', '0x000000000439', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000308:0004', '2026-11-24 21:18:21.437', 5588602, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 1, '0x0000002D000003080002', 1, '2026-11-24 16:18:21.437-05', '{}', '0x00000000043B', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000308:0004', '2026-11-24 21:18:21.437', NULL, NULL, NULL, NULL, NULL, NULL, 5588603, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 2, '0x0000002D000003080003', 2, '2026-11-24 16:18:21.437-05', '{}', '0x00000000043B', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:000000a8:000a', '2026-11-24 21:18:19.803', NULL, NULL, NULL, NULL, NULL, NULL, 7823735, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000000A80007', 6, '2026-11-24 16:18:19.803-05', '{}', '0x0000000003EF', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000000a8:000a', '2026-11-24 21:18:19.803', 7823735, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 7823735, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000000A80008', 8, '2026-11-24 16:18:19.803-05', '{}', '0x0000000003EF', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:000000b0:0004', '2026-11-24 21:18:19.81', 7823735, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 7823735, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000000B00002', 2, '2026-11-24 16:18:19.81-05', '{}', '0x0000000003F0', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000420:000a', '2026-11-24 21:18:22.273', NULL, NULL, NULL, NULL, NULL, NULL, 8123738, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000004200007', 6, '2026-11-24 16:18:22.273-05', '{}', '0x00000000045E', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000420:000a', '2026-11-24 21:18:22.273', 8123738, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 8123738, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000004200008', 8, '2026-11-24 16:18:22.273-05', '{}', '0x00000000045E', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000428:0004', '2026-11-24 21:18:22.297', 8123738, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 8123738, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000004280002', 2, '2026-11-24 16:18:22.297-05', '{}', '0x00000000045F', false);
INSERT INTO kept.lab_wide_history VALUES ('delete', 'lab', 'wide', '0000002d:00000438:0004', '2026-11-24 21:18:22.313', 8123738, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', NULL, NULL, NULL, NULL, NULL, NULL, 1, '0x0000002D000004380002', 1, '2026-11-24 16:18:22.313-05', '{}', '0x000000000461', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000438:0004', '2026-11-24 21:18:22.313', NULL, NULL, NULL, NULL, NULL, NULL, 8123739, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 2, '0x0000002D000004380003', 2, '2026-11-24 16:18:22.313-05', '{}', '0x000000000461', false);
INSERT INTO kept.lab_wide_history VALUES ('insert', 'lab', 'wide', '0000002d:00000648:000a', '2026-11-24 21:18:23.737', NULL, NULL, NULL, NULL, NULL, NULL, 8422873, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 4, '0x0000002D000006480007', 6, '2026-11-24 16:18:23.737-05', '{}', '0x0000000004A3', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000648:000a', '2026-11-24 21:18:23.737', 8422873, 'new', NULL, 1.50, '2026-02-03 04:05:06.007', 'x@example.org', 8422873, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 5, '0x0000002D000006480008', 8, '2026-11-24 16:18:23.737-05', '{}', '0x0000000004A3', false);
INSERT INTO kept.lab_wide_history VALUES ('update', 'lab', 'wide', '0000002d:00000650:0004', '2026-11-24 21:18:23.74', 8422873, 'new', 'again', -1.00, '2026-02-03 04:05:06.007', 'x@example.org', 8422873, 'new', 'again', 7.00, '2026-02-03 04:05:06.007', 'x@example.org', 1, '0x0000002D000006500002', 2, '2026-11-24 16:18:23.74-05', '{}', '0x0000000004A4', false);


--
-- Data for Name: mssql_cdc_sinks; Type: TABLE DATA; Schema: kept; Owner: -
--

INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_net_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_net", "object_id": 901578362, "create_date": "2026-11-24T21:14:16.023000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "net", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 13, "updated": 32, "inserted": 21}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "net_mask", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16415, false, 'mssql_cdc_staging_690593c9c078_2026112421205680e58e', '2026-11-24 16:20:58.416629-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_plain', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_plain", "object_id": 901578266, "create_date": "2026-11-24T21:14:15.757000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "plain", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 13, "updated": 32, "inserted": 21}, "layout": 2, "server": "sql.example:1433", "deletes": "hard", "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16409, false, 'mssql_cdc_staging_690593c9c078_202611242120574ec160', '2026-11-24 16:20:59.034328-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_wide_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_wide", "object_id": 901578330, "create_date": "2026-11-24T21:14:15.923000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "wide", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 11, "updated": 32, "inserted": 19}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "wide", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16397, false, 'mssql_cdc_staging_690593c9c078_20261124212056b0f402', '2026-11-24 16:20:58.635206-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_soft', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_soft", "object_id": 901578298, "create_date": "2026-11-24T21:14:15.850000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "soft", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 12, "updated": 32, "inserted": 20}, "layout": 2, "server": "sql.example:1433", "deletes": "soft", "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16427, false, 'mssql_cdc_staging_690593c9c078_20261124212057d0a9f4', '2026-11-24 16:20:58.6199-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_plain_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_plain", "object_id": 901578266, "create_date": "2026-11-24T21:14:15.757000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "plain", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 13, "updated": 32, "inserted": 21}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16447, false, 'mssql_cdc_staging_690593c9c078_202611242120594ea5d5', '2026-11-24 16:21:02.523641-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_gap_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [{"upto": "0x0000002D000009500004", "after": "0x0000002D000000680001"}], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_gap", "object_id": 901578458, "create_date": "2026-11-24T21:14:16.200000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "gap", "schema": "lab"}, "copies": [], "events": {"copied": 20, "deleted": 0, "updated": 0, "inserted": 0}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": null, "selection_hash": null, "uncaptured_ids": []}', 16498, false, 'mssql_cdc_staging_690593c9c078_202611242121066ba08e', '2026-11-24 16:21:06.96641-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_plain_transactions', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_plain", "object_id": 901578266, "create_date": "2026-11-24T21:14:15.757000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "plain", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 13, "updated": 32, "inserted": 21}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16459, false, 'mssql_cdc_staging_690593c9c078_20261124212102a3033b', '2026-11-24 16:21:04.706786-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_masked', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_masked", "object_id": 901578394, "create_date": "2026-11-24T21:14:16.077000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "masked", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 21, "updated": 12, "inserted": 27}, "layout": 2, "server": "sql.example:1433", "deletes": "hard", "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": ["columns id, name, amount, email", "rows with amount > ''0''", "email renamed to mail", "email masked by hash", "id masked by hash", "salt 6a21710aa1879e08"], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": "1:82f06b07bbfe8b0dac31ec45ba6f9c69cbb40de792967c8442ef7616c8fa0d44", "uncaptured_ids": []}', 16471, false, 'mssql_cdc_staging_690593c9c078_20261124212103740c58', '2026-11-24 16:21:05.637594-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_masked_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_masked", "object_id": 901578394, "create_date": "2026-11-24T21:14:16.077000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "masked", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 21, "updated": 12, "inserted": 27}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": ["columns id, name, amount, email", "rows with amount > ''0''", "email renamed to mail", "email masked by hash", "id masked by hash", "salt 6a21710aa1879e08"], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": "1:82f06b07bbfe8b0dac31ec45ba6f9c69cbb40de792967c8442ef7616c8fa0d44", "uncaptured_ids": []}', 16485, false, 'mssql_cdc_staging_690593c9c078_202611242121059d52db', '2026-11-24 16:21:06.615351-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_chosen_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_chosen", "object_id": 901578426, "create_date": "2026-11-24T21:14:16.137000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "chosen", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 8, "updated": 37, "inserted": 16}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16503, false, 'mssql_cdc_staging_690593c9c078_202611242121049431bd', '2026-11-24 16:21:06.066484-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_asserted_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_asserted", "object_id": 901578490, "create_date": "2026-11-24T21:14:16.283000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "asserted", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 13, "updated": 32, "inserted": 21}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16522, false, 'mssql_cdc_staging_690593c9c078_20261124212107875b55', '2026-11-24 16:21:09.00751-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_lost_history', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_lost", "object_id": 901578554, "create_date": "2026-11-24T21:14:16.640000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "lost", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 14, "updated": 32, "inserted": 22}, "layout": 2, "server": "sql.example:1433", "deletes": null, "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16547, false, 'mssql_cdc_staging_690593c9c078_2026112421211065a124', '2026-11-24 16:21:11.483831-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');
INSERT INTO kept.mssql_cdc_sinks VALUES ('lab_lost', 2, '{"run": {"dag": "upgrades", "run": "scheduled__2026-01-01T00:00:00+00:00", "task": "shop.load", "try_number": 1}, "gaps": [], "feeds": [{"feed": {"kind": "capture_instance", "name": "lab_lost", "object_id": 901578554, "create_date": "2026-11-24T21:14:16.640000"}, "after": "0x0000002D000000680001"}], "needs": "0.2.0", "table": {"table": "lost", "schema": "lab"}, "copies": [], "events": {"copied": 0, "deleted": 14, "updated": 32, "inserted": 22}, "layout": 2, "server": "sql.example:1433", "deletes": "hard", "history": {"form": "events", "changes": "all_old", "operations": ["insert", "update", "delete"]}, "spec_id": "690593c9c078", "version": 2, "witness": {"lsn": "0x0000002D000009500004", "kind": "lsn", "time": "2026-11-24T21:18:25.270000", "recovery_fork": "C16C1C5A-66D7-4EBE-97CF-CA42D45CB383"}, "asserted": null, "database": "upgrades", "position": {"at": "0x0000002D000009500004", "kind": "lsn"}, "unfilled": [], "positions": [], "selection": [], "column_map": [], "others_seen": false, "schema_hash": "1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c", "schema_kept": true, "waiting_ids": [], "window_after": "0x0000002D000000680001", "selection_hash": null, "uncaptured_ids": []}', 16534, false, 'mssql_cdc_staging_690593c9c078_20261124212109682e70', '2026-11-24 16:21:10.325869-05', '{"1:4cb9e92b545c18032011c4195028dcbc5b39b4a171bc698657cfbc94fd87180c": "{\"columns\":[[1,\"id\",\"int\",4,10,0,false,null,false],[2,\"name\",\"nvarchar\",60,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[3,\"note\",\"nvarchar\",-1,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false],[4,\"amount\",\"decimal\",5,9,2,true,null,false],[5,\"seen\",\"datetime\",8,23,3,true,null,false],[6,\"email\",\"varchar\",40,0,0,true,\"SQL_Latin1_General_CP1_CI_AS\",false]],\"key\":[\"id\"]}"}');


--
-- Name: mssql_cdc_sinks mssql_cdc_sinks_pkey; Type: CONSTRAINT; Schema: kept; Owner: -
--

ALTER TABLE ONLY kept.mssql_cdc_sinks
    ADD CONSTRAINT mssql_cdc_sinks_pkey PRIMARY KEY (sink);


--
-- Name: lab_lost_id_idx; Type: INDEX; Schema: kept; Owner: -
--

CREATE UNIQUE INDEX lab_lost_id_idx ON kept.lab_lost USING btree (id);


--
-- Name: lab_masked_id_idx; Type: INDEX; Schema: kept; Owner: -
--

CREATE UNIQUE INDEX lab_masked_id_idx ON kept.lab_masked USING btree (id);


--
-- Name: lab_plain_id_idx; Type: INDEX; Schema: kept; Owner: -
--

CREATE UNIQUE INDEX lab_plain_id_idx ON kept.lab_plain USING btree (id);


--
-- Name: lab_soft_id_idx; Type: INDEX; Schema: kept; Owner: -
--

CREATE UNIQUE INDEX lab_soft_id_idx ON kept.lab_soft USING btree (id);


--
-- PostgreSQL database dump complete
--

\unrestrict 17xWt4p1GGC0CEYTJdJyzEoYT7ZtejCcuyrIf7W3TBea1PhblFnOq6r83kskjbm

