"""The shop's customers: a thread that changes the source over pymssql until it is stopped."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import shop
from airflow_provider_mssql_cdc.cli.exit import CommandError

_PAUSE = 0.02


class Writer:
    """Changes the shop in transactions, the same ones for the same seed and first rows.

    One thread uses it at a time. ``start`` and ``stop`` may alternate; the connection stays open between them.

    :param connect: opens a DB-API connection to the shop without autocommit, with ``%s`` placeholders
    :param rows: the number of rows that the shop started with
    """

    def __init__(self, connect: Callable[[], Any], rows: int, seed: int = 1) -> None:
        sizes = shop.sizes(rows)
        self._connect, self._chance = connect, random.Random(seed)
        self._connection: Any = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._customers = list(range(1, sizes["sales.customers"] + 1))
        self._orders = list(range(1, sizes["sales.orders"] + 1))
        self._products = list(range(1, sizes["catalog.products"] + 1))
        self._next = {"customer": len(self._customers), "order": len(self._orders), "product": len(self._products)}
        self.commits = 0
        self.rollbacks = 0

    def start(self) -> None:
        """Begin, or go on, in a thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="shop writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the current transaction.

        :raises CommandError: if the thread ended with an error
        """
        self.pause()
        if self._error is not None:
            raise CommandError(f"the writer could not change the shop: {self._error}") from self._error

    @property
    def running(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def pause(self) -> None:
        """End after the current transaction, and keep an error for ``stop``."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """End, and close the connection; does nothing a second time."""
        self.pause()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def last_order(self) -> int:
        """Insert one more order with its items, and return its id."""
        with self._open().cursor() as cursor:
            self._place_order(cursor)
        self._open().commit()
        self.commits += 1
        return self._orders[-1]

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.step()
                self._stop.wait(_PAUSE)
        except Exception as error:
            # For the thread that stops this one
            self._error = error

    def step(self) -> None:
        """Run one transaction."""
        connection = self._open()
        change = self._chance.choices(_CHANGES, _WEIGHTS)[0]
        with connection.cursor() as cursor:
            if change(self, cursor):
                connection.commit()
                self.commits += 1
            else:
                connection.rollback()
                self.rollbacks += 1

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _new(self, kind: str) -> int:
        self._next[kind] += 1
        return self._next[kind]

    def _insert(self, cursor: Any, table: shop.Table, row: tuple[Any, ...]) -> None:
        cursor.execute(f"INSERT INTO {table.full_name} VALUES ({', '.join(['%s'] * len(row))})", row)

    def _place_order(self, cursor: Any) -> bool:
        """Insert an order with its items, sometimes with a new customer."""
        if self._chance.random() < 0.3:
            self._customers.append(self._new("customer"))
            self._insert(cursor, shop.CUSTOMERS, shop.customer(self._chance, self._customers[-1]))
            customer_id = self._customers[-1]
        else:
            customer_id = self._chance.choice(self._customers)
        order_id = self._new("order")
        self._insert(cursor, shop.ORDERS, shop.order(self._chance, order_id, customer_id))
        for line_no in range(1, self._chance.randint(1, 4) + 1):
            item = shop.order_item(self._chance, order_id, line_no, self._chance.choice(self._products))
            self._insert(cursor, shop.ORDER_ITEMS, item)
        self._orders.append(order_id)
        return True

    def _ship_order(self, cursor: Any) -> bool:
        """Update an order twice, so that only the second value may be found in the lake."""
        order_id = self._chance.choice(self._orders)
        for status in self._chance.sample(shop.STATUSES, 2):
            cursor.execute("UPDATE sales.orders SET status = %s WHERE order_id = %s", (status, order_id))
        return True

    def _discount_items(self, cursor: Any) -> bool:
        """Update the items of several orders in one statement."""
        cursor.execute(
            "UPDATE sales.order_items SET quantity = quantity + 1, discount = %s WHERE order_id BETWEEN %s AND %s",
            (self._chance.random(), first := self._chance.choice(self._orders), first + 3),
        )
        return True

    def _cancel_order(self, cursor: Any) -> bool:
        """Delete an order with its items."""
        order_id = self._orders.pop(self._chance.randrange(len(self._orders)))
        cursor.execute("DELETE FROM sales.order_items WHERE order_id = %s", (order_id,))
        cursor.execute("DELETE FROM sales.orders WHERE order_id = %s", (order_id,))
        return True

    def _renumber_customer(self, cursor: Any) -> bool:
        """Give a customer another key, in all tables that name it."""
        position = self._chance.randrange(len(self._customers))
        numbers = (self._new("customer"), self._customers[position])
        cursor.execute("UPDATE sales.customers SET customer_id = %s WHERE customer_id = %s", numbers)
        cursor.execute("UPDATE sales.orders SET customer_id = %s WHERE customer_id = %s", numbers)
        self._customers[position] = numbers[0]
        return True

    def _renumber_lines(self, cursor: Any) -> bool:
        """Move an order's lines by one, onto keys that its other lines just left."""
        cursor.execute(
            "UPDATE sales.order_items SET line_no = line_no + 1 WHERE order_id = %s",
            (self._chance.choice(self._orders),),
        )
        return True

    def _change_price(self, cursor: Any) -> bool:
        """Update products without touching their text, which the change table then leaves out."""
        cursor.execute(
            "UPDATE catalog.products SET price = price + 1 WHERE product_id = %s",
            (self._chance.choice(self._products),),
        )
        return True

    def _rewrite_text(self, cursor: Any) -> bool:
        """Update a product's text, then its title alone."""
        product_id = self._chance.choice(self._products)
        cursor.execute(
            "UPDATE catalog.products SET description = %s WHERE product_id = %s", (shop.text(self._chance), product_id)
        )
        cursor.execute("UPDATE catalog.products SET title = title + N'!' WHERE product_id = %s", (product_id,))
        return True

    def _list_product(self, cursor: Any) -> bool:
        """Insert a product."""
        self._products.append(self._new("product"))
        self._insert(cursor, shop.PRODUCTS, shop.product(self._chance, self._products[-1]))
        return True

    def _replace_customer(self, cursor: Any) -> bool:
        """Delete a customer and insert another under the same key."""
        customer_id = self._chance.choice(self._customers)
        cursor.execute("DELETE FROM sales.customers WHERE customer_id = %s", (customer_id,))
        self._insert(cursor, shop.CUSTOMERS, shop.customer(self._chance, customer_id))
        return True

    def _give_up(self, cursor: Any) -> bool:
        """Change several tables, to be rolled back: nothing of it may reach the lake."""
        order_id = self._chance.choice(self._orders)
        cursor.execute("UPDATE sales.orders SET amount = amount + 1000000 WHERE order_id = %s", (order_id,))
        cursor.execute("DELETE FROM sales.order_items WHERE order_id = %s", (order_id,))
        self._insert(cursor, shop.PRODUCTS, shop.product(self._chance, self._next["product"] + 1))
        return False


_CHANGES, _WEIGHTS = zip(
    (Writer._place_order, 6),
    (Writer._ship_order, 5),
    (Writer._discount_items, 3),
    (Writer._cancel_order, 2),
    (Writer._renumber_customer, 1),
    (Writer._renumber_lines, 1),
    (Writer._change_price, 3),
    (Writer._rewrite_text, 2),
    (Writer._list_product, 1),
    (Writer._replace_customer, 1),
    (Writer._give_up, 1),
    strict=True,
)
