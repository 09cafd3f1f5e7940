// Elements, made without markup, which the page's Content-Security-Policy would refuse.

/** What an element is given; `class` and `text` besides attributes. */
export type Attributes = Readonly<Record<string, string>> & { readonly text?: string };

/** Makes an element. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { text, ...attributes }: Attributes = {},
  children: readonly Node[] = [],
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

/** An element of the page. */
export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T; // all of them stand in dashboard.html
}

/** Writes a text only where it differs: what is not touched is not laid out again. */
export function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** As many children as there are texts, with those texts. */
export function setChildren(
  host: HTMLElement,
  texts: readonly (readonly string[])[],
  make: () => HTMLElement,
): void {
  while (host.children.length > texts.length) host.lastElementChild?.remove();
  while (host.children.length < texts.length) host.append(make());
  for (const [i, cells] of texts.entries()) {
    const row = host.children[i] as HTMLElement; // made above
    for (const [j, text] of cells.entries()) setText(row.children[j] as HTMLElement, text);
  }
}
