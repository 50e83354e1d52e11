from specdec.bench.suites import code_lines


def test_a_directive_is_code_and_a_comment_is_none(tmp_path):
    python, native = tmp_path / "a.py", tmp_path / "a.cpp"
    python.write_text('"""Words."""\n# words\nx = 1\n', encoding="utf-8")
    native.write_text("// words\n#define WIDTH 8\n", encoding="utf-8")
    assert [code_lines(file) for file in (python, native)] == [b"x = 1", b"#define WIDTH 8"]
