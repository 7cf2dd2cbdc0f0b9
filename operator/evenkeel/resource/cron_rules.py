"""The rules by which the API server refuses a cron text, in CEL, with the sentences of `plan`.

`v1alpha1` puts them into the schema of spec.schedule. They refuse what `when.cron` refuses and say
its sentence, for each of the five fields one; tests compare both by a table and by random texts.
Whether a day ever comes (31 February) needs a calendar: that stays a condition.

A rule holds for a text that was stored before: Kubernetes 1.30 checks the rules of the spec when a
status is written, and a schedule whose old text is refused today would lose its status.

Not guaranteed: that both say the same number of mistakes. `when.cron` names the first one of a
text, the API server the first one of each field.

The API server estimates the cost of each rule, and refuses a CRD whose estimate is too high. So no
text is joined to one of unknown length: `string(1)` and a chosen element of a list count as such.
"""

from pydantic import JsonValue

from evenkeel.resource.text import cel, cel_text, unless_unchanged
from evenkeel.when import cron_words as words
from evenkeel.when.cron_words import Field

_SPACE = r"[ \t\r\n]"
_WORD = "[!-~]+"
_PLAIN = r"^[ -~\t\r\n]*$"
_FIVE = f"^{_SPACE}*[!-?A-~][!-~]*({_SPACE}+{_WORD}){{4}}{_SPACE}*$"
_ZONE = f"(?i)^{_SPACE}*(CRON_)?TZ="
_ALIAS = f"(?i)^({'|'.join(words.ALIASES)})$"
_ALIAS_ALONE = f"(?i)^{_SPACE}*({'|'.join(words.ALIASES)}){_SPACE}*$"
_STEP = "(/0*[1-9][0-9]*)?"
_DIGITS = "^[0-9]+$"
_GOOD_STEP = "^[^/]*/0*[1-9][0-9]*$"
_GOOD_HASH = r"^H(\([^()/]*\))?(/|$)"
_HEAD = "e.find('^[^/]*')"
_INSIDE_HASH = "e.find('[(][^)]*').find('[^(]*$')"


def cron_rules() -> list[dict[str, JsonValue]]:
    """The entries of x-kubernetes-validations at a cron text."""
    return [
        unless_unchanged(cel(_matches("self", _PLAIN), words.PLAIN_ASCII)),
        unless_unchanged(_form()),
        *(unless_unchanged(_field(number, field)) for number, field in enumerate(words.FIELDS)),
    ]


def _form() -> dict[str, JsonValue]:
    """An alias, or five fields."""
    five = f"{_matches('self', _FIVE)} && !{_matches('self', _ZONE)}"
    rule = f"!{_matches('self', _PLAIN)} || {_matches('self', _ALIAS_ALONE)} || {five}"
    alias = _let(
        "a",
        f"self.find({cel_text(_WORD)}).lowerAscii()",
        f"{_matches('a', _ALIAS)} ? {_shown('a')} + {_say(words.NOT_ALONE)}"
        f" : {_shown('a')} + {_say(words.UNKNOWN_ALIAS)}",
    )
    count = _let(
        "n",
        f"self.findAll({cel_text(_WORD)}).size()",
        _first_that_holds(
            *((f"n == {number}", cel_text(words.found(number))) for number in range(1, 8)),
            otherwise=cel_text(words.found(8)),
        ),
    )
    message = _first_that_holds(
        (_matches("self", f"^{_SPACE}*$"), cel_text(words.EMPTY)),
        (_matches("self", f"(?i)^{_SPACE}*@EVERY({_SPACE}|$)"), cel_text(words.EVERY)),
        (_matches("self", f"^{_SPACE}*@"), alias),
        (_matches("self", _ZONE), cel_text(words.ZONE_INSIDE)),
        otherwise=count,
    )
    return {**cel(rule, words.FIVE), "messageExpression": message}


def _field(number: int, field: Field) -> dict[str, JsonValue]:
    """One of five fields, where the text has five."""
    before = f"^{_SPACE}*({_WORD}{_SPACE}+){{{number}}}{_WORD}"
    word = f"self.upperAscii().find({cel_text(before)}).find({cel_text(_WORD + '$')})"
    entry = _entry(field)
    good = _matches("w", f"^{entry}(,{entry})*$")
    ranges = f"w.findAll({cel_text('[0-9A-Z]+-[0-9A-Z]+')})"
    forwards = f"{ranges}.all(r, {_low('r', field)} <= {_high('r', field)})"
    rule = (
        f"!{_matches('self', _FIVE)} || {_matches('self', _ZONE)}"
        f" || [{word}].all(w, {good} && {forwards})"
    )
    bad = f"w.substring(w.find({cel_text(f'^({entry},)*')}).size()).find('^[^,]*')"
    backwards = f"w.split(',').filter(e, e.contains('-') && {_is_backwards('e', field)})[0]"
    message = _let(
        "w",
        word,
        f"{good} ? {_let('e', backwards, _subject(field, _turned_round('e', field)))}"
        f" : {_let('e', bad, _subject(field, _complaint(field)))}",
    )
    return {**cel(rule, f"the {field.name} is not understood"), "messageExpression": message}


def _subject(field: Field, sentence: str) -> str:
    """`sentence`, which may begin with `s`: the field and its entry `e` in quotes."""
    return _let("s", f"{cel_text(field.name + ' ')} + {_shown('e')}", sentence)


# --- what a field may hold --------------------------------------------------------------------


def _entry(field: Field) -> str:
    """A pattern of one entry of a list, whose range may still run backwards."""
    value = _value(field, field.high)
    hashed = _value(field, field.hash_high)
    forms = [rf"[*?]{_STEP}", rf"H(\({hashed}-{hashed}\))?{_STEP}", f"{value}(-{value})?{_STEP}"]
    if field is words.DAY_OF_MONTH:
        forms.append("L")
    if field is words.DAY_OF_WEEK:
        forms.append(f"{value}(L|#[1-5])")
    return f"({'|'.join(forms)})"


def _value(field: Field, high: int) -> str:
    return f"({'|'.join([_numbers(field.low, high), *field.names])})"


def _numbers(low: int, high: int) -> str:
    """A pattern of the numbers from low (below 10) to high (below 100)."""
    if high < 10:
        return f"0*[{low}-{high}]"
    tens, ones = divmod(high, 10)
    decades = f"[1-{tens - 1}][0-9]|{tens}[0-{ones}]" if tens > 1 else f"1[0-{ones}]"
    return f"0*([{low}-9]|{decades})"


# --- what is said -----------------------------------------------------------------------------


def _complaint(field: Field) -> str:
    """About the entry `e` that no pattern lets through, in the order of `when.cron`."""
    cases = [
        ("e == ''", _about(words.EMPTY_ENTRY)),
        (_matches("e", "^R([/(]|$)"), _about(words.RANDOM)),
    ]
    if field is words.DAY_OF_MONTH:
        cases.append(("e.endsWith('W')", _about(words.NEAREST_WEEKDAY)))
    a_step = "^[^/]*#[^/]*/" if field is words.MONTH else "^[^/]*(#[^/]*|L)/"  # JUL is a month
    cases += [
        (f"e.contains('/') && !{_matches('e', _GOOD_STEP)}", _about(words.BAD_STEP)),
        (f"e.startsWith('H') && !{_matches('e', _GOOD_HASH)}", _about(words.BAD_HASH)),
        ("e.startsWith('H')", _about_range(_INSIDE_HASH, field)),
        (_matches("e", a_step), _about(words.STEP_OF_A_DAY)),
    ]
    if field is words.DAY_OF_WEEK:
        cases += [
            ("e == 'L'", _about(words.LAST_OF_WHICH_DAY)),
            ("e.endsWith('L')", _about_value("e.substring(0, e.size() - 1)", field)),
            (
                f"e.contains('#') && !{_matches('e', '^[^#]*#[1-5]$')}",
                _about(words.WHICH_OF_THE_MONTH),
            ),
            ("e.contains('#')", _about_value("e.find('^[^#]*')", field)),
        ]
    else:
        a_day = "#" if field is words.MONTH else "#|L$"
        cases.append((_matches("e", a_day), _about(words.NO_DAY_FIELD)))
    return _first_that_holds(*cases, otherwise=_about_range(_HEAD, field))


def _about_range(text: str, field: Field) -> str:
    """About `a-b` or `a`: the first of the two that is wrong; else, of an `H`, both together."""
    valid = f"^{_value(field, field.high)}$"
    low, high = "t.find('^[^-]*')", "t.substring(t.find('^[^-]*-?').size())"
    cases = [
        (f"!{_matches(low, valid)}", _about_value(low, field)),
        (f"!{_matches(high, valid)}", _about_value(high, field)),
        (_is_backwards("t", field), _turned_round("t", field)),
    ]
    found = _first_that_holds(*cases, otherwise=_about(field.hash_out_of_range))
    return _let("t", text, found)


def _about_value(text: str, field: Field) -> str:
    number, other = _about(field.out_of_range), _about(field.not_understood)
    return f"({_matches(text, _DIGITS)} ? {number} : {other})"


def _is_backwards(text: str, field: Field) -> str:
    return f"{_low(text, field)} > {_high(text, field)}"


def _turned_round(text: str, field: Field) -> str:
    low, high = _low_text(text), _high_text(text)
    two = f"{low} + {cel_text(f'-{field.full_high},{field.low}-')} + {high}"
    said = f"s + {_say(words.BACKWARDS + words.TWO_RANGES)} + {two}"
    if field is not words.DAY_OF_WEEK:
        return said
    last = f"s + {_say(words.BACKWARDS + words.SUNDAY_LAST)} + {low} + '-7'"
    first = f"s + {_say(words.BACKWARDS + words.SUNDAY_FIRST)} + {high}"
    cases = ((f"{_high(text, field)} == 0", last), (f"{_low(text, field)} == 7", first))
    return f"({_first_that_holds(*cases, otherwise=said)})"


def _low(text: str, field: Field) -> str:
    return _number(_low_text(text), field)


def _high(text: str, field: Field) -> str:
    return _number(_high_text(text), field)


def _low_text(text: str) -> str:
    return f"{text}.find('[0-9A-Z]+-').find('[0-9A-Z]+')"


def _high_text(text: str) -> str:
    return f"{text}.find('-[0-9A-Z]+').find('[0-9A-Z]+')"


def _number(text: str, field: Field) -> str:
    if not field.names:
        return f"int({text})"
    names = "{" + ", ".join(f"'{name}': {value}" for name, value in field.names.items()) + "}"
    return f"({_matches(text, _DIGITS)} ? int({text}) : {names}[{text}])"


# --- CEL --------------------------------------------------------------------------------------


def _matches(text: str, pattern: str) -> str:
    return f"{text}.matches({cel_text(pattern)})"


def _let(name: str, value: str, result: str) -> str:
    """`result` with `name` for `value`: CEL has no other way to name a value."""
    return f"[{value}].map({name}, {result})[0]"


def _first_that_holds(*cases: tuple[str, str], otherwise: str) -> str:
    return " : ".join([*(f"{when} ? {then}" for when, then in cases), otherwise])


def _about(sentence: str) -> str:
    """The sentence after the field and its entry."""
    return f"s + {_say(sentence)}"


def _say(sentence: str) -> str:
    """A sentence that follows the quoted entry."""
    return cel_text(" " + sentence)


def _shown(text: str) -> str:
    most = words.LONGEST_SHOWN
    return (
        f"'\\'' + ({text}.size() <= {most} ? {text} : {text}.substring(0, {most}) + '...') + '\\''"
    )
