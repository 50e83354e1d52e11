"""Whatever settings come, the page's check answers with a sentence, or the run that they ask for ends by itself."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.events import Finished
from specdec.messages import Refused
from specdec.methods import METHODS, RULE_FACTS
from specdec.settings import SETTINGS
from specdec.ui.request import check

ODD = (0, -1, 17, 2**64, -0.0, 1e-45, 1e300, float("nan"), float("inf"), True, None, "", "\0", "\ud800", "%s", [], {})
values = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from([*METHODS, *RULE_FACTS]),
    st.integers(-3, 70),
    st.floats(0.0, 3.0),
    st.text(max_size=30),
)
names = [name for name in SETTINGS if name not in ("target", "max_tokens")]
usual = {one.name: one.default for one in SETTINGS.values()} | {"prompt": "Once", "target": "embedded"}


@settings(derandomize=True, max_examples=150, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(names), values, max_size=3))
def test_settings_are_refused_in_a_sentence_or_run_to_the_end(engine, changes: dict[str, Any]) -> None:
    try:
        request = check(**usual | {"max_tokens": 4} | changes)
        *_, last = engine.start(request, measure=False, details=False).events
    except Refused as refusal:
        assert str(refusal)
    else:
        assert isinstance(last, Finished)
