"""Weights of word sort, of the characters of code page 1252.

They are those that index keys of Access hold, which are Windows' own: measured by the authors of Jackcess 4.0.5
(index_codes_genleg.txt and index_codes_gen.txt, Apache License 2.0). Case weighs nothing in such keys; it is documented
that a lower-case letter comes before its upper-case form.
"""

from __future__ import annotations

CHARACTERS = "\t\n\v\f\r" + bytes(
    byte for byte in range(0x20, 0x100) if byte not in (0x7F, 0x81, 0x8D, 0x8F, 0x90, 0x9D)
).decode("cp1252")
"""What the tables are about, in their order."""

# An entry is the first weight of a character, in hexadecimal digits; +, where it weighs as several characters; / and
# the second weight, where it is not 2; ! and a code for what counts only where all other weights are equal; - for
# nothing; ? for a weight that is not known.
WINDOWS_2000 = """
    803 804 805 806 807 7 9 A C E 10 12 !80 14 16 18 2C 1A !82 1C 1E 36 38 3A 3C 3E 40 42 44 46 48 20 22 2E 30
    32 24 26 4A 4C 4D 4F 51 53 55 57 59 5B 5C 5E 60 62 64 66 68 69 6B 6D 6F 71 73 75 76 78 27 29 2A 2B02 2B03
    2B07 4A 4C 4D 4F 51 53 55 57 59 5B 5C 5E 60 62 64 66 68 69 6B 6D 6F 71 73 75 76 78 2B09 2B0B 2B0D 2B0F 35A1
    2B39 53/7B 2B3D 34B9 34B3 34B4 2B02/3 34BA 6B/14 2B46 64+51 78/14 2B37 2B38 2B3B 2B3C 34B5 !89 !8B 2B1C 6E04
    6B/14 2B47 64+51 78/14 76/13 802 2B10 34A6 34A7 34A8 34A9 2B11 34AA 2B12 34AB 4A/3 3305 34AC !83 34AD 2B13
    34AE 3304 3A 3C 2B14 34AF 34B0 34B1 2B15 38 64/3 3307 3712 3716 371A 2B16 4A/F 4A/E 4A/12 4A/19 4A/13 4A/1A
    4A+51 4D/1C 51/F 51/E 51/12 51/13 59/F 59/E 59/12 59/13 4F/68 62/19 64/F 64/E 64/12 64/19 64/13 3309 64/21
    6F/F 6F/E 6F/12 6F/13 76/E 6D+57 6B+6B 4A/F 4A/E 4A/12 4A/19 4A/13 4A/1A 4A+51 4D/1C 51/F 51/E 51/12 51/13
    59/F 59/E 59/12 59/13 4F/68 62/19 64/F 64/E 64/12 64/19 64/13 330A 64/21 6F/F 6F/E 6F/12 6F/13 76/E 6D+57
    76/13
"""
"""Of Latin1_General and, for Unicode, of SQL_Latin1_General_CP1: Windows NT 4.0 to Server 2003."""

WINDOWS_2008 = """
    705 706 707 708 709 702 71C 71D 71F 721 723 725 !80 727 72A 72D 803 72F !82 733 735 D17 D19 D1A D1B D1C D1D
    D1E D1F D20 D21 737 73A 80E 812 814 73C 73E E02 E09 E0A E1A E21 E23 E25 E2C E32 E35 E36 E48 E51 E70 E7C E7E
    E89 E8A E91 E99 E9F EA2 EA4 EA6 EA7 EA9 73F 741 742 743 744 748 E02 E09 E0A E1A E21 E23 E25 E2C E32 E35 E36
    E48 E51 E70 E7C E7E E89 E8A E91 E99 E9F EA2 EA4 EA6 EA7 EA9 74A 74C 74E 750 7A9 77B E23/7B 77F A10 B25 B26
    ? B2C/C E91/14 788 E7C+E21 EA9/14 779 77A 77D 77E B27 !89 !90 75D E9C E91/14 789 E7C+E21 EA9/14 EA7/13 704
    751 797 798 799 79A 752 A06 753 A07 E02/3 818 A08 - A09 754 A0A 817 D1A D1B 755 A0B A0C A0D 756 D19 E7C/3
    81A D18/CE D18/D6 D1B/DE 757 E02/F E02/E E02/12 E02/19 E02/13 E02/1A E02+E21 E0A/1C E21/F E21/E E21/12
    E21/13 E32/F E32/E E32/12 E32/13 E1A/68 E70/19 E7C/F E7C/E E7C/12 E7C/19 E7C/13 81C E7C/21 E9F/F E9F/E
    E9F/12 E9F+E21 EA7/E E99+E2C E91+E91 E02/F E02/E E02/12 E02/19 E02/13 E02/1A E02+E21 E0A/1C E21/F E21/E
    E21/12 E21/13 E32/F E32/E E32/12 E32/13 E1A/68 E70/19 E7C/F E7C/E E7C/12 E7C/19 E7C/13 81D E7C/21 E9F/F
    E9F/E E9F/12 E9F+E21 EA7/E E99+E2C EA7/13
"""
"""Of Latin1_General_100: Windows Server 2008."""

ACCENTS = {
    "\u0300": 0x0D,
    "\u0301": 0x0C,
    "\u0302": 0x10,
    "\u0303": 0x17,
    "\u0304": 0x15,
    "\u0306": 0x13,
    "\u0307": 0x0E,
    "\u0308": 0x11,
    "\u030a": 0x18,
    "\u030b": 0x1B,
    "\u030c": 0x12,
    "\u0327": 0x1A,
    "\u0328": 0x19,
}
"""What a combining accent adds to the second weight of its letter, in both tables: so much more than 2 is that of the
letter that is written as one character."""
