"""Previews of links to the page have a title, a sentence and a picture in the page's language."""

import html
import re

import httpx
import pytest
from PIL import Image

from specdec.ui.gateway.cache import PATHS, PICTURE, with_first_screen
from specdec.ui.text import LANGUAGES, speaking, strings

META = re.compile(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"')


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_introduces_itself_and_not_gradio(address, language):
    page = httpx.get(address.rstrip("/") + PATHS[language], headers={"Accept-Language": language})
    assert int(page.headers["content-length"]) <= 200_000 and page.headers["content-encoding"] == "br"
    head = page.text.partition("</head>")[0]
    with speaking(language):
        words = strings("page")
    tags = META.findall(head)
    told = {name: html.unescape(content) for name, content in tags}
    assert re.findall("<title>(.*?)</title>", head) == [words["title"]] == [told["og:title"]]
    assert told["description"] == told["og:description"] == f"{words['headline']} {words['lead']}"
    assert told["twitter:card"] == "summary_large_image" and told["og:image:alt"] == words["preview"]
    names = [name for name, _ in tags]
    assert len(names) == len(set(names)) and not any("gradio" in content.lower() for _, content in tags)
    picture = httpx.get(told["og:image"])
    assert told["og:image"].startswith(address) and picture.headers["content-type"] == "image/png"
    assert picture.content == PICTURE.read_bytes()


def test_the_picture_is_as_large_as_it_says_and_light():
    with Image.open(PICTURE) as picture:
        assert picture.size == (1200, 630)
    assert PICTURE.stat().st_size <= 200_000


def test_the_picture_has_the_address_that_a_proxy_names():
    page = with_first_screen(b'<head><script>{"root":"https://a.b/app"}</script></head>', "en").decode()
    assert 'content="https://a.b/app/preview.png"' in page
