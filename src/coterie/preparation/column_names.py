"""What the name of a column says about its content: identifiers, postal codes, telephone numbers."""

import re

IDENTIFIER = "identifier"
ROW_NUMBERS = "numbers of the rows"
POSTAL_CODE = "postal code"
PHONE_NUMBER = "phone number"
WORD = re.compile(r"[A-ZÄÖÜ]+(?=[A-ZÄÖÜ][a-zäöü])|[A-ZÄÖÜ]?[a-zäöü]+|[A-ZÄÖÜ]+|\d+|#")
ALWAYS = frozenset({"id", "uid", "uuid", "guid", "oid"})  # an identifier also if it repeats
IF_UNIQUE = frozenset({
    "no", "nr", "nummer", "num", "number", "#", "key", "code", "ref", "reference", "index", "idx", "serial", "sku",
    "ean", "isbn", "barcode", "row", "rownum", "unnamed",
})  # fmt: skip
POSTAL = frozenset({"zip", "zipcode", "postcode", "postal", "postleitzahl", "plz"})
PHONE = frozenset({"phone", "telephone", "telefon", "mobile", "cellphone", "fax", "tel", "msisdn"})
OWNERS = (
    "row|user|customer|client|product|order|item|person|patient|student|employee|account|session|device|transaction|"
    "invoice|store|passenger|player|object|case|record|member|subject|sample|ticket|vendor|supplier|household|machine|"
    "kunde|nutzer|artikel|gerät|filiale|haushalt|mitglied|konto"
)
JOINED = re.compile(rf"(?:{OWNERS})(id|no|nr)|\w{{3,}}(nr|nummer)")  # ``customerid`` without a capital letter


def words(name: str) -> list[str]:
    """The words of a name in lower case: ``CustomerID``, ``customer_id`` and ``customer id`` have the same."""
    result = [word.lower() for word in WORD.findall(name)]
    joined = JOINED.fullmatch(result[-1]) if result else None
    return result if joined is None else [*result[:-1], joined[1] or joined[2]]


def is_identifier_name(name: str) -> bool:
    """Whether the name is that of an identifier, whatever the values are."""
    last = [word for word in words(name) if not word.isdigit()][-1:]
    return bool(ALWAYS.intersection(last))


def is_identifier_name_if_unique(name: str) -> bool:
    """Whether the name is that of an identifier, if no value repeats; a column without a name is a row number."""
    last = [word for word in words(name) if not word.isdigit()][-1:]
    return not name.strip() or bool(IF_UNIQUE.intersection(last)) or is_owner_name(name)


def is_owner_name(name: str) -> bool:
    """Whether the name is that of things that have numbers or names, such as ``customer``."""
    return not set(words(name)[-1:]).isdisjoint(OWNERS.split("|"))


def is_postal_name(name: str) -> bool:
    return bool(POSTAL.intersection(words(name))) or words(name)[-2:] == ["post", "code"]


def is_phone_name(name: str) -> bool:
    return bool(PHONE.intersection(words(name)))


def is_series_of_names(names: tuple[str, ...]) -> bool:
    """Whether all names are equal but for numbers in them, as those of the elements of a vector are."""
    return len({re.sub(r"\d+", "0", name) for name in names}) == 1 and all(re.search(r"\d", name) for name in names)
