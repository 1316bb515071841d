// Elements made of text, never of markup: names and source lines come from anywhere.

type Child = Node | string | undefined | null | false;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attrs: Record<string, string | (() => void) | undefined> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attrs)) {
    if (value === undefined) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value);
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** A button. What is read on it is part of its name, for who speaks to the computer. */
export function button(text: string, title: string, click: () => void, attrs: Record<string, string> = {}): HTMLButtonElement {
  const name = /\w/.test(text) && !title.toLowerCase().includes(text.toLowerCase()) ? `${text}: ${title}` : title;
  return make("button", { type: "button", title, "aria-label": name, click, ...attrs }, text);
}

export function download(name: string, content: Blob): void {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
