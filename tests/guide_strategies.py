"""Random guides and recipes, for round trips."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from hypothesis import strategies as st

from redraft.denoiser import SoftGuide
from redraft.denoiser.guide import Guide, HardGuide
from redraft.guidance import (
    Acrostic,
    Alliteration,
    Bias,
    Characters,
    Classifier,
    ClassifierFree,
    Contrast,
    EndsWith,
    Experts,
    Forbid,
    Infill,
    InSentence,
    Json,
    JsonSchema,
    Keywords,
    Lines,
    Lipogram,
    Near,
    Occurrences,
    OneOf,
    Ordered,
    Paragraphs,
    Pattern,
    ReadingLevel,
    Repetition,
    Rhyme,
    Sentences,
    Sentiment,
    Similar,
    StartsWith,
    Style,
    Syllables,
    Tidy,
    Tokens,
    Topic,
    Words,
    during,
)
from redraft.guidance.occurrence import shows
from redraft.recipes import Recipe, discover

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
phrases = texts.filter(lambda text: bool(text.strip()))
numbers = st.floats(-1e6, 1e6)
shares = st.floats(0, 1, exclude_min=True)
targets = st.floats(0.01, 0.99)
PATTERNS = ("a|b", "(?i)storm.*", "[A-Z][a-z]+\\.", "é+", '"quoted" \\\\ back')

SCHEMAS = (True, '{"const": 1.0}', {"type": "array", "items": {"enum": ["é", None]}}, {"const": '"\\ \n'})


def ranges(floor: int) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(st.integers(floor, 60), st.none() | st.integers(0, 60))
    return pairs.map(lambda p: {"least": p[0], "most": None if p[1] is None else p[0] + p[1]})


def make(name: str, arguments: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Guide]:
    cls = discover().get(name).guide
    if cls.variadic is None:
        return arguments.map(lambda values: cls(**values))
    return arguments.map(lambda v: cls(*v[cls.variadic], **{k: x for k, x in v.items() if k != cls.variadic}))


seen = phrases.filter(shows)
words = st.lists(seen | st.lists(seen, min_size=1, max_size=3), min_size=1, max_size=3)
periods = st.tuples(st.integers(0, 9), st.integers(1, 9)).filter(lambda p: p[0] < p[1])
edges = st.fixed_dictionaries(
    {"texts": st.lists(texts.filter(bool), min_size=1, max_size=3)}, optional={"ignore_case": st.booleans()}
)
one_of_few = st.sampled_from(("storm", "old dog", ("sea", "seas"), "é"))
SIMPLE: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "acrostic": st.fixed_dictionaries(
        {"letters": st.sampled_from(("HOPE", "É1", "a b"))},
        optional={"by": st.sampled_from(("lines", "sentences", "words")), "exact_case": st.booleans()},
    ),
    "alliteration": st.fixed_dictionaries(
        {"letter": st.sampled_from("sSé")},
        optional={"at_least": st.integers(1, 9) | st.sampled_from((0.05, 0.5, 1.0))},
    ),
    "characters": ranges(0),
    "ends-with": edges,
    "in-sentence": st.fixed_dictionaries(
        {"word": one_of_few, "place": st.sampled_from(("first", "last"))},
        optional={"exact_case": st.booleans()},
    ),
    "lines": ranges(1),
    "lipogram": st.fixed_dictionaries({"letters": st.sampled_from(("e", "aei", "Q"))}),
    "near": st.fixed_dictionaries(
        {"first": one_of_few, "second": one_of_few},
        optional={"within": st.integers(1, 30), "exact_case": st.booleans()},
    ),
    "occurrences": st.fixed_dictionaries(
        {"word": one_of_few, "least": st.integers(0, 3), "most": st.integers(3, 9)},
        optional={"exact_case": st.booleans()},
    ),
    "ordered": st.fixed_dictionaries(
        {"words": st.lists(one_of_few, min_size=2, max_size=3)}, optional={"exact_case": st.booleans()}
    ),
    "paragraphs": ranges(1),
    "reading-level": st.fixed_dictionaries(
        {"grade": st.floats(0, 18)}, optional={"tolerance": st.floats(0.1, 9)}
    ),
    "rhyme": st.fixed_dictionaries(
        {"scheme": st.sampled_from(("AABB", "abab -", "AA"))},
        optional={"families": st.none() | st.integers(1, 9)},
    ),
    "starts-with": edges,
    "syllables": st.fixed_dictionaries(
        {"counts": st.lists(st.integers(1, 9), min_size=1, max_size=5)},
        optional={"unknown": st.sampled_from(("refuse", "estimate")), "also": st.just(("harbour", "storm"))},
    ),
    "tidy": st.just({}),
    "bias": st.builds(
        lambda pairs, table: {"phrases": dict(pairs) if table else tuple(pairs)},
        st.lists(st.tuples(phrases, numbers), min_size=1, max_size=3),
        st.booleans(),
    ),
    "classifier": st.fixed_dictionaries(
        {"source": phrases, "label": phrases}, optional={"target": targets, "judge": phrases}
    ),
    "classifier-free": st.fixed_dictionaries(
        {}, optional={"condition": st.dictionaries(phrases, phrases, max_size=2), "scale": numbers}
    ),
    "contrast": st.fixed_dictionaries(
        {"expert": phrases, "anti_expert": phrases}, optional={"scale": numbers}
    ),
    "experts": st.fixed_dictionaries(
        {"models": st.dictionaries(phrases, numbers, min_size=1, max_size=2)}, optional={"own": numbers}
    ),
    "forbid": st.fixed_dictionaries(
        {"phrases": st.lists(phrases, min_size=1, max_size=3)},
        optional={"regexes": st.lists(st.sampled_from(PATTERNS), max_size=2), "whole": st.booleans()},
    ),
    "infill": st.fixed_dictionaries(
        {"template": st.sampled_from(("___ é", "a [[3-6]] b", 'say "___" \\[ now', "[[2]]\n___ \x7f"))},
        optional={"anchor": st.sampled_from(("early", "free"))},
    ),
    "json": st.fixed_dictionaries(
        {}, optional={"max_depth": st.integers(0, 3), "whitespace": st.sampled_from(("spaced", "free"))}
    ),
    "json-schema": st.fixed_dictionaries(
        {"schema": st.sampled_from(SCHEMAS)},
        optional={"max_depth": st.integers(0, 2), "whitespace": st.sampled_from(("pretty", "free"))},
    ),
    "keywords": st.fixed_dictionaries(
        {"words": words},
        optional={"at_least": st.just(1), "whole": st.booleans(), "exact_case": st.booleans()},
    ),
    "one-of": st.fixed_dictionaries(
        {"choices": st.lists(texts, min_size=1, max_size=3)}, optional={"ignore_case": st.booleans()}
    ),
    "pattern": st.fixed_dictionaries(
        {"pattern": st.sampled_from(PATTERNS)}, optional={"contains": st.booleans()}
    ),
    "repetition": st.fixed_dictionaries({}, optional={"strength_nats": st.floats(0, 1e3)}),
    "sentences": ranges(1),
    "sentiment": st.fixed_dictionaries(
        {"tone": st.sampled_from(("positive", "negative"))}, optional={"target": targets}
    ),
    "similar": st.fixed_dictionaries({"text": phrases}, optional={"least": targets, "encoder": phrases}),
    "style": st.fixed_dictionaries(
        {"style": st.sampled_from(("formal", "casual", "old-fashioned", "plain"))},
        optional={"target": targets},
    ),
    "tokens": ranges(0),
    "topic": st.fixed_dictionaries({"text": phrases}, optional={"least": targets}),
    "words": ranges(0),
}


def guides_of(kind: type[Guide]) -> st.SearchStrategy[Any]:
    names = [name for name in SIMPLE if issubclass(discover().get(name).guide, kind)]
    return st.sampled_from(names).flatmap(lambda name: make(name, SIMPLE[name]))


hard = st.recursive(
    guides_of(HardGuide),
    lambda inner: (
        make("not", st.fixed_dictionaries({"guide": inner}))
        | st.sampled_from(("all", "any")).flatmap(
            lambda name: make(
                name, st.fixed_dictionaries({"guides": st.lists(inner, min_size=1, max_size=3)})
            )
        )
    ),
    max_leaves=4,
)
soft = st.recursive(
    guides_of(SoftGuide),
    lambda inner: (
        make("scaled", st.fixed_dictionaries({"guide": inner, "scale": numbers | st.integers(-3, 3)}))
        | st.builds(
            lambda period, guide: discover().get("during").guide(period[0] / 10, period[1] / 10, guide),
            periods,
            inner,
        )
    ),
    max_leaves=3,
)
COMPOUND = {"all": hard, "any": hard, "not": hard, "scaled": soft, "during": soft}

RECORD = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 12}},
    "required": ["n"],
    "additionalProperties": False,
}
PAIR = str(files("redraft.classifiers") / "data" / "sentiment")  # a folder with token scores

# Of every registered guide at least one instance, which `test_contract.py` holds against the contract.
EXAMPLES: dict[str, list[Guide]] = {
    "acrostic": [Acrostic("ST")],
    "all": [Keywords("storm") & Words(1, 6)],
    "alliteration": [Alliteration("s")],
    "any": [Words(2, 3) | ~Keywords("sea", "dog")],
    "bias": [Bias({"sea": 2.0, "old sea": -1.5})],
    "characters": [Characters(3, 9)],
    "classifier": [Classifier(PAIR, "positive"), Classifier(PAIR, "negative", target=0.8, judge=PAIR)],
    "classifier-free": [ClassifierFree({"tone": "up"}, 2.0), ClassifierFree()],
    "contrast": [Contrast("toy/1", "toy/2", 0.5)],
    "during": [during(0.25, 0.5, Bias({"sea": 1.0}))],
    "ends-with": [EndsWith("STORM.", "é", ignore_case=True)],
    "experts": [Experts({"toy/1": 0.5, "toy/2": -0.25}, own=0.5)],
    "forbid": [Forbid("storm", "é", regexes=["[0-9]"]), Forbid("a", whole=False, exact_case=True)],
    "in-sentence": [InSentence("storm", "first")],
    "infill": [Infill("The ___ sat [[2-3]]."), Infill("___é", anchor="free")],
    "json": [Json(1)],
    "json-schema": [JsonSchema(RECORD)],
    "keywords": [Keywords("storm", ("ship", "ships")), Keywords("sea", "dog", at_least=1, whole=False)],
    "lines": [Lines(1, 2)],
    "lipogram": [Lipogram("eS")],
    "near": [Near("storm", ("sea", "seas"), within=2)],
    "not": [~Keywords("storm")],
    "occurrences": [Occurrences("storm", 1, 1)],
    "one-of": [OneOf(["The storm.", "the sea", "é"], ignore_case=True)],
    "ordered": [Ordered("storm", "sea")],
    "paragraphs": [Paragraphs(1, 2)],
    "pattern": [Pattern(r"(?i)the [\p{L} ]+\.")],
    "reading-level": [ReadingLevel(4)],
    "repetition": [Repetition(1.5)],
    "rhyme": [Rhyme("AA", families=3)],
    "scaled": [2.0 * Repetition(), -0.5 * during(0, 0.5, Bias({"sea": 1.0}))],
    "sentences": [Sentences(1, 2)],
    "sentiment": [Sentiment("positive")],
    "similar": [Similar("a storm at sea", least=0.4)],
    "starts-with": [StartsWith("the ", "STORM", "é", ignore_case=True)],
    "style": [Style("old-fashioned")],
    "syllables": [Syllables([1, 2])],
    "tidy": [Tidy()],
    "tokens": [Tokens(3, 9)],
    "topic": [Topic("the sea")],
    "words": [Words(2, 5), Words(0)],
}

policies: dict[str, st.SearchStrategy[Any]] = {
    "selection": st.sampled_from(("random", "margin", "left-to-right", "confidence", "entropy-bound"))
    | st.fixed_dictionaries({"name": st.just("confidence"), "noise": st.floats(0, 9)}),
    "revision": st.sampled_from(("off", "uncertain", "remdm"))
    | st.fixed_dictionaries({"name": st.just("remdm"), "schedule": st.sampled_from(("cap", "rescale"))})
    | st.fixed_dictionaries({"name": st.just("uncertain"), "rate": st.floats(0.01, 0.99)}),
    "stop": st.sampled_from(("off", "patience"))
    | st.fixed_dictionaries({"name": st.just("patience"), "unchanged": st.integers(0, 9)}),
}
settings = st.fixed_dictionaries(
    {},
    optional={
        "steps": st.integers(1, 999),
        "temperature": st.floats(0.01, 9) | st.integers(0, 9),
        "top_k": st.just("off") | st.integers(1, 99),
        "top_p": st.just("off") | shares,
        "min_p": st.just("off") | shares,
        "block_length": st.just("off") | st.integers(1, 99),
        **policies,
    },
)
recipes = st.builds(
    Recipe,
    title=texts,
    description=texts,
    prompt=texts,
    chat=st.booleans(),
    model=texts.filter(bool),
    samples=st.integers(1, 1000),
    seed=st.none() | st.integers(0, 2**63 - 1),
    length=st.none() | st.integers(1, 128),
    condition=st.dictionaries(texts, texts, max_size=2),
    settings=settings,
    guides=st.lists(hard | soft, max_size=3).map(tuple),
)
