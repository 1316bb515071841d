"""Firefox under the names that Playwright gives to a page, as far as tests of pages use them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from tests.viz.bidi import Session

KEYS = {
    "Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010", "Tab": "\ue004",
    "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
    "Space": " ", "Shift": "\ue008", "PageUp": "\ue00e", "PageDown": "\ue00f",
}  # fmt: skip

# Elements by CSS, by their role or label and name, or by their text.
FIND = """(steps) => {
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const tags = { button: "button, summary", dialog: "dialog", alert: "", tab: "", menuitem: "",
                 tree: "", application: "", slider: "input[type=range]",
                 checkbox: "input[type=checkbox]" };
  const name = (e) => e.getAttribute("aria-label") || e.innerText || e.title
    || e.closest("label")?.innerText || "";
  const matches = (text, name, exact) => exact ? text.trim() === name
    : text.toLowerCase().includes(name.toLowerCase());
  let at = [document];
  for (const s of steps) {
    const all = (css) => at.flatMap((e) => [...e.querySelectorAll(css)]);
    if (s.css) at = all(s.css.replace(":visible", ""))
      .filter((e) => !s.css.includes(":visible") || shown(e));
    if (s.role) at = all([`[role=${s.role}]`, tags[s.role]].filter(Boolean).join())
      .filter((e) => (e.getAttribute("role") ?? s.role) === s.role && shown(e)
        && (!s.name || matches(name(e), s.name, s.exact)));
    if (s.label) at = all("[aria-label]").filter((e) => matches(name(e), s.label, s.exact));
    if (s.text) at = all("*")
      .filter((e) => !e.children.length && matches(e.textContent, s.text, s.exact) && shown(e));
    if (s.has) at = at.filter((e) => e.textContent.includes(s.has));
    if (s.first) at = at.slice(0, 1);
  }
  return at;
}"""


# What Playwright lets a page believe about its reader is a preference of a whole Firefox.
BELIEFS: dict[tuple[str, Any], dict[str, int]] = {
    ("color_scheme", "dark"): {"layout.css.prefers-color-scheme.content-override": 0},
    ("reduced_motion", "reduce"): {"ui.prefersReducedMotion": 1},
    ("forced_colors", "active"): {"browser.display.document_color_use": 2},
    ("has_touch", True): {"ui.primaryPointerCapabilities": 1, "ui.allPointerCapabilities": 1},
}


class Firefox:
    """As Playwright's browser: what gives contexts."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._session = Session(path, {})

    def new_context(self, **options: Any) -> Context:
        wanted: dict[str, int] = {}
        for option in options.items():
            wanted |= BELIEFS.get(option, {}) if option[0] != "viewport" else {}
        session = Session(self._path, wanted) if wanted else self._session
        return Context(session, options, bool(wanted))

    def close(self) -> None:
        self._session.close()


class Context:
    def __init__(self, session: Session, options: dict[str, Any], alone: bool) -> None:
        self.session, self.options, self._alone = session, options, alone
        self.pages: list[Page] = []

    def new_page(self) -> Page:
        session = self.session
        context = session.call("browsingContext.create", type="tab")["context"]
        page = Page(session, context)
        if size := self.options.get("viewport"):
            ratio = self.options.get("device_scale_factor", 1.0)
            session.call(
                "browsingContext.setViewport",
                context=context,
                viewport=size,
                devicePixelRatio=ratio,
            )
        self.pages.append(page)
        return page

    def close(self) -> None:
        for page in self.pages:
            page.hear()
            if not self._alone:
                self.session.call("browsingContext.close", context=page.context)
        if self._alone:
            self.session.close()


class Page:
    def __init__(self, session: Session, context: str) -> None:
        self.session, self.context = session, context
        self.keyboard, self.mouse = Keyboard(self), Mouse(self)
        self._heard: dict[str, Callable[[Any], None]] = {}

    def on(self, event: str, act: Callable[[Any], None]) -> None:
        self._heard[event] = act

    def hear(self) -> None:
        """Hands on what the page has said since."""
        kept = [e for e in self.session.events if self._is_download(e)]
        for method, told in [e for e in self.session.events if not self._is_download(e)]:
            if method == "network.beforeRequestSent" and told.get("context") == self.context:
                self._heard.get("request", bool)(Request(told["request"]["url"]))
            elif method == "log.entryAdded" and told["source"].get("context") == self.context:
                level = "warning" if told["level"] == "warn" else str(told["level"])
                self._heard.get("console", bool)(Message(level, str(told.get("text"))))
        self.session.events.clear()
        self.session.events.extend(kept)

    @staticmethod
    def _is_download(event: tuple[str, Any]) -> bool:
        return event[0] == "browsingContext.downloadEnd"

    def goto(self, address: str) -> None:
        self.session.call(
            "browsingContext.navigate", context=self.context, url=address, wait="complete"
        )

    @property
    def url(self) -> str:
        return str(self.evaluate("location.href"))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, as JSON has it."""
        found = self.session.call(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self.context}, awaitPromise=True, userActivation=True,
        )  # fmt: skip
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        text = found["result"].get("value")
        return None if text is None else json.loads(text)

    def wait_for_timeout(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000)

    def wait_for_selector(self, selector: str, timeout: float = 30_000) -> None:
        is_text = selector.startswith("text=")
        step = {"text": selector[5:]} if is_text else {"css": selector}
        Locator(self, [step]).wait_for(timeout)

    def locator(self, css: str, has_text: str = "") -> Locator:
        return Locator(self, []).locator(css, has_text)

    def get_by_role(self, role: str, name: str = "", exact: bool = False) -> Locator:
        return Locator(self, []).get_by_role(role, name, exact)

    def get_by_label(self, label: str, exact: bool = False) -> Locator:
        return Locator(self, [{"label": label, "exact": exact}])

    def eval_on_selector(self, css: str, function: str) -> Any:
        return self.locator(css).evaluate_all(f"(all) => ({function})(all[0])")

    def eval_on_selector_all(self, css: str, function: str) -> Any:
        return self.locator(css).evaluate_all(function)

    def get_by_text(self, text: str, exact: bool = False) -> Locator:
        return Locator(self, [{"text": text, "exact": exact}])

    def act(self, kind: str, actions: list[dict[str, Any]], **parameters: Any) -> None:
        source = {"type": kind, "id": kind, "actions": actions, **parameters}
        self.session.call("input.performActions", context=self.context, actions=[source])

    @contextmanager
    def expect_download(self) -> Iterator[Download]:
        found = Download()
        yield found
        found.value = Saved(self.session.wait_for("browsingContext.downloadEnd")["filepath"])

    def screenshot(self, path: Any = None) -> bytes:
        import base64

        data = self.session.call("browsingContext.captureScreenshot", context=self.context)["data"]
        found = base64.b64decode(data)
        if path is not None:
            with open(path, "wb") as file:
                file.write(found)
        return found


class Request:
    def __init__(self, url: str) -> None:
        self.url = url


class Message:
    def __init__(self, kind: str, text: str) -> None:
        self.type, self.text = kind, text


class Saved:
    def __init__(self, path: str) -> None:
        self._path = path

    def path(self) -> str:
        return self._path


class Download:
    value: Saved


class Keyboard:
    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, key: str) -> None:
        *held, last = key.split("+") if len(key) > 1 else [key]
        values = [KEYS.get(k, k) for k in (*held, last)]
        down = [{"type": "keyDown", "value": v} for v in values]
        up = [{"type": "keyUp", "value": v} for v in reversed(values)]
        self._page.act("key", down + up)

    def type(self, text: str) -> None:
        for letter in text:
            self.press(letter)


class Mouse:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._at = (0, 0)

    def _act(self, *actions: dict[str, Any]) -> None:
        self._page.act("pointer", list(actions), parameters={"pointerType": "mouse"})

    def move(self, x: float, y: float, steps: int = 1) -> None:
        (x0, y0), self._at = self._at, (round(x), round(y))
        points = [
            (x0 + (x - x0) * k / steps, y0 + (y - y0) * k / steps) for k in range(1, steps + 1)
        ]
        self._act(*({"type": "pointerMove", "x": round(a), "y": round(b)} for a, b in points))

    def down(self) -> None:
        self._act({"type": "pointerDown", "button": 0})

    def up(self) -> None:
        self._act({"type": "pointerUp", "button": 0})

    def click(self, x: float, y: float, count: int = 1) -> None:
        self.move(x, y)
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._act(*press * count)

    def dblclick(self, x: float, y: float) -> None:
        self.click(x, y, 2)

    def wheel(self, dx: float, dy: float) -> None:
        (x, y), turned = self._at, {"deltaX": round(dx), "deltaY": round(dy)}
        self._page.act("wheel", [{"type": "scroll", "x": x, "y": y, **turned}])


class Locator:
    """Elements, looked for anew whenever something is asked of them."""

    def __init__(self, page: Page, steps: list[dict[str, Any]]) -> None:
        self._page, self._steps = page, steps

    def locator(self, css: str, has_text: str = "") -> Locator:
        return Locator(self._page, [*self._steps, {"css": css, "has": has_text}])

    def get_by_role(self, role: str, name: str = "", exact: bool = False) -> Locator:
        return Locator(self._page, [*self._steps, {"role": role, "name": name, "exact": exact}])

    @property
    def first(self) -> Locator:
        return Locator(self._page, [*self._steps, {"first": True}])

    def _ask(self, expression: str) -> Any:
        """A value of `e`, the first of the elements, or of `all`."""
        steps = json.dumps(self._steps)
        return self._page.evaluate(
            f"(() => {{ const all = ({FIND})({steps}), e = all[0]; return {expression}; }})()"
        )

    def _wait(self, seconds: float = 20) -> Self:
        self.wait_for(1000 * seconds)
        return self

    def wait_for(self, timeout: float = 30_000) -> None:
        end = time.monotonic() + timeout / 1000
        while not self._ask("Boolean(e)"):
            if time.monotonic() > end:
                raise TimeoutError(f"waited for {self._steps}")
            time.sleep(0.05)

    def count(self) -> int:
        return int(self._ask("all.length"))

    def inner_text(self) -> str:
        return str(self._wait()._ask("e.innerText"))

    def all_inner_texts(self) -> list[str]:
        return list(self._ask("all.map((e) => e.innerText)"))

    def evaluate_all(self, function: str) -> Any:
        """A function of JavaScript, of all the elements."""
        return self._ask(f"({function})(all)")

    def input_value(self) -> str:
        return str(self._wait()._ask("e.value"))

    def get_attribute(self, name: str) -> str | None:
        return self._wait()._ask(f"e.getAttribute({json.dumps(name)})")

    def is_visible(self) -> bool:
        return bool(self._ask("Boolean(e) && e.getClientRects().length > 0"))

    def bounding_box(self) -> dict[str, float]:
        return self._wait()._ask("e.getBoundingClientRect().toJSON()")

    def focus(self) -> None:
        self._wait()._ask("e.focus()")

    def click(self) -> None:
        self._wait()._ask("e.scrollIntoView({ block: 'nearest', inline: 'nearest' })")
        box = self.bounding_box()
        self._page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def uncheck(self) -> None:
        if self._wait()._ask("e.checked"):
            self.click()

    def press(self, key: str) -> None:
        self.focus()
        self._page.keyboard.press(key)

    def fill(self, text: str) -> None:
        told = (
            "['input', 'change'].forEach((t) => e.dispatchEvent(new Event(t, { bubbles: true })))"
        )
        self._wait()._ask(f"(e.focus(), e.value = {json.dumps(text)}, {told}, null)")

    def select_option(self, value: str) -> None:
        self.fill(value)
