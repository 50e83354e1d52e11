"""What a bad server does costs its lane, says one sentence, and leaks nothing."""

import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from specdec import cli
from specdec.events import Committed, Failed, Finished
from specdec.servers import lane, stream
from specdec.servers.answers import ServerError
from specdec.servers.connect import connect, Server
from specdec.types import SamplingParams
from tests.servers.stub import Asked, CLOSE, Reply, sse, Stub

KEY = "sk-very-secret"
SILENCE_S = {"silence": 1.0, "signs of life for too long": 1.0}
TOTAL_S = {"nothing but signs of life": 1.0}
MODELS = {"data": [{"id": "target", "owned_by": "vllm", "max_model_len": 512}]}
PARAMS = SamplingParams(max_tokens=8)


@pytest.fixture(autouse=True)
def small_answers(monkeypatch) -> None:
    monkeypatch.setattr(stream, "ANSWER_BYTES", 100_000)


def event(text: str = " a", number: Any = 7, finish: str | None = None, **more: Any) -> dict[str, Any]:
    told = {"tokens": [text], "token_logprobs": [-0.1], "top_logprobs": [{text: -0.1}]}
    choice = {"index": 0, "text": text, "token_ids": [number], "logprobs": told, "finish_reason": finish}
    return {"model": "target", "choices": [choice | more]}


TOKENS = Reply.of({"tokens": [1, 2]})


def vllm(completion: Callable[[Asked], Reply], tokens: Reply = TOKENS) -> Callable[[Asked], Reply]:
    """A server that is sound but for its completions, or the tokens of a prompt."""
    told = {"/v1/models": Reply.of(MODELS), "/version": Reply.of({"version": "0.32.0"}), "/tokenize": tokens}
    told["/metrics"] = Reply([b'vllm:generation_tokens_total{engine="0"} 1.0\n'], type="text/plain")

    def answer(asked: Asked) -> Reply:
        return told[asked.path] if asked.path in told else completion(asked)

    return answer


def run(server: Server) -> tuple[str, list[Any]]:
    """The sentence of the failure, and the run; it must end like any other."""
    events = lane.race(server, None, "Once", PARAMS)
    assert isinstance(events[-1], Finished) and events[-1].reason == "failed"
    (failed,) = (e for e in events if isinstance(e, Failed))
    assert failed.fatal
    return failed.reason, events


GOOD = [event(" a"), event(" b")]
COUNTS = {"speculative_decoding": {"per_step_drafted": [1], "per_step_accepted": [4]}}
UNLIKELY = {"tokens": [" a"], "token_logprobs": [3.0], "top_logprobs": [{" a": 3.0}]}
NO_TOKENS = event(logprobs=None, token_ids=None)
STREAMS: dict[str, tuple[Any, str]] = {
    "an error in mid-stream": ([*GOOD, {"error": {"message": f"boom {KEY}"}}], "stopped with an error"),
    "a socket closed in mid-stream": ([*GOOD, CLOSE], "or broke off"),
    "an end without a reason": ([*GOOD, "[DONE]"], "without saying why"),
    "an end without the last word": (GOOD, "broke off in the middle"),
    "JSON too deep": ([*GOOD, b"data: " + b"[" * 9000 + b"\n\n"], "not valid JSON"),
    "a list": ([*GOOD, [1, 2]], "another model than the one that was requested"),
    "a line without an end": ([*GOOD, *[b"x" * 10_000] * 50], "more than 100000 bytes"),
    "a negative id": ([*GOOD, event(number=-5)], "token ids that cannot be read"),
    "more ids than text": ([*GOOD, event(token_ids=[7, 8])], "tokens that cannot be read"),
    "text without tokens": ([NO_TOKENS, NO_TOKENS], "tokens that cannot be read"),
    "a probability above one": ([event(logprobs=UNLIKELY)], "log-probabilities that cannot be read"),
    "silence": ([*GOOD, 30.0], "within 1 seconds"),
    "nothing but signs of life": ([*GOOD, *[b": ping\n\n", 0.1] * 300], "did not finish within 1 seconds"),
    "signs of life for too long": ([*GOOD, *[b": ping\n\n", 0.1] * 300], "did not finish within 1 seconds"),
    "too many tokens": ([event() for _ in range(20)], "more tokens than it was asked for"),
    "a reason of its own": ([*GOOD, event(finish="<script>")], "aborted the text"),
    "impossible counts": (
        [*GOOD, event(finish="length"), {"model": "target", "choices": [], "metrics": COUNTS}, "[DONE]"],
        "counts of drafts that cannot be read",
    ),
    "nothing but an end token": ([event("", 2, "stop"), "[DONE]"], "chat template"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_bad_stream_costs_its_lane_and_says_why(name: str, monkeypatch) -> None:
    events, said = STREAMS[name]
    monkeypatch.setattr(stream, "SILENCE_S", SILENCE_S.get(name, 20.0))
    with Stub(vllm(lambda _: Reply.stream(events))) as stub:
        server = connect(stub.address, KEY, TOTAL_S.get(name, 20.0))
        reason, told = run(server)
        assert said in reason and "\n" not in reason and KEY not in reason and "<" not in reason
    kept = "".join(e.text for e in told if isinstance(e, Committed))
    assert len(reason) < 250 and (kept.startswith(" a b") or events[:2] != GOOD)


NO_ROUTE = {"error": {"message": f"no such\nroute {KEY}"}}
ELSEWHERE = {"location": "http://127.0.0.1:1/v1"}
ANSWERS: dict[str, tuple[Reply, str]] = {
    "404": (Reply.of(NO_ROUTE, 404), "refused (status 404): (it repeats the key)"),
    "400 in plain text": (Reply([b"<h1>no</h1>"], 400, "text/html"), "refused (status 400): Bad Request"),
    "a redirect": (Reply([], 307, headers=ELSEWHERE), "refused (status 307): Temporary Redirect"),
    "an endless error": (Reply([b"x" * 9_999] * 99, 400), "refused (status 400): Bad Request"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_refusal_is_one_sentence(name: str) -> None:
    reply, said = ANSWERS[name]
    with Stub(vllm(lambda _: reply)) as stub:
        reason, _ = run(connect(stub.address, KEY))
    with Stub(lambda _: reply) as stub, pytest.raises(ServerError) as raised:
        connect(stub.address, KEY)
    for sentence in (reason, str(raised.value)):
        assert said in sentence and KEY not in sentence and "<" not in sentence and len(sentence) < 250


def dripping(asked: Asked) -> Reply:
    return Reply(part for _ in range(600) for part in (b" ", 0.05))


def endless(asked: Asked) -> Reply:
    return Reply((sse(event()) for _ in range(10**6)), type="text/event-stream")


def test_a_byte_at_a_time_takes_no_longer_than_all_may_take(monkeypatch) -> None:
    for total_s, silence_s in ((0.5, 20.0), (20.0, 0.5)):
        monkeypatch.setattr(stream, "SILENCE_S", silence_s)
        with Stub(dripping) as stub, pytest.raises(ServerError, match=r"did not finish within 0\.5 seconds"):
            connect(stub.address, total_s=total_s)
    monkeypatch.setattr(stream, "SILENCE_S", 20.0)
    with Stub(vllm(dripping)) as stub:
        server = connect(stub.address, total_s=1.0)
        with pytest.raises(ServerError, match="did not finish within 1 seconds"):
            server.sample([1, 2], PARAMS, 1)
        with pytest.raises(ServerError, match="did not finish within 1 seconds"):
            server.tokenize("Once")  # which would be answered
    monkeypatch.setattr(stream, "SILENCE_S", 0.5)
    with Stub(vllm(dripping)) as stub:
        server = connect(stub.address)
        with pytest.raises(ServerError, match=r"did not finish within 0\.5 seconds"):
            server.sample([1, 2], PARAMS, 1)
        assert server.tokenize("Once")  # it has seconds of its own


def test_the_terminal_ends_at_a_server_that_drips(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys.modules["specdec.cli.judges"], "HOUR_S", 0.5)
    with Stub(dripping) as stub:
        assert cli.main(["certify", "--server", stub.address]) == 2
    assert "did not finish within 0.5 seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({"data": []}, "names no model"),
        ({"data": [{"id": "x", "owned_by": "openai"}]}, "This server is not supported"),
        ({"data": [{"id": 5, "owned_by": "vllm"}]}, "names no model"),
        ([], "models that cannot be read"),
    ],
)
def test_what_is_no_server_of_these_is_not_guessed_at(models: Any, said: str) -> None:
    with Stub(lambda _: Reply.of(models)) as stub, pytest.raises(ServerError, match=said):
        connect(stub.address)


def test_the_key_goes_into_one_header_alone() -> None:
    with Stub(vllm(lambda _: Reply.stream([*GOOD, event(finish="length"), "[DONE]"]))) as stub:
        server = connect(stub.address, KEY)
        events = lane.race(server, None, "Once", PARAMS)
        assert {asked.headers["authorization"] for asked in stub.asked} == {f"Bearer {KEY}"}
        assert all(KEY not in asked.path + json.dumps(asked.body) for asked in stub.asked)
    assert KEY not in repr(events) + repr(lane.about(server)) + repr(server.facts)


@pytest.mark.parametrize("key", ["two\nlines", "ключ", "a\x00b"])
def test_a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with pytest.raises(ServerError, match="cannot be sent") as raised:
        connect("http://127.0.0.1:1", key)
    assert key not in str(raised.value)


def test_who_stops_hangs_up() -> None:
    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with Stub(vllm(endless)) as stub:
        with pytest.raises(KeyboardInterrupt):
            lane.race(connect(stub.address), None, "Once", SamplingParams(max_tokens=500), on_text=stop)
        assert stub.hung_up.wait(10)


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path, monkeypatch) -> None:
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with Stub(lambda _: Reply.of(MODELS), tls) as stub:
        with pytest.raises(ServerError, match="CERTIFICATE_VERIFY_FAILED"):
            connect(stub.address, KEY)
        assert not stub.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        connect(stub.address, KEY)
        assert stub.asked
