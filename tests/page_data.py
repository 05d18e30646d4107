"""What a page holds, unpacked: its data lies in it as base64 of zlib's deflate."""

import base64
import json
import re
import zlib


def page_text(page, name):
    """The text of "result" or "extra" in the text of a page."""
    return zlib.decompress(base64.b64decode(re.search(rf'id="{name}">([^<]*)</script>', page).group(1))).decode()


def page_data(page, name):
    return json.loads(page_text(page, name))
