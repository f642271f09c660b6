import type { Page } from "playwright-core";

const STEPS_MIN = 120;
// What it looks for may still be on its way from the service.
const LOOK_MS = 10_000;
// What has the focus, by the name that a screen reader says.
const NAME = `(() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return "";
  const label = one.labels?.[0]?.textContent ?? "";
  return (one.ariaLabel || label || one.textContent || "").trim();
})()`;

/** A visitor without a mouse: everything by keys alone, and only where Tab comes to. */
export class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Goes on by Tab until what has the focus is called so. Throws when it never is. */
  async to(name: string | RegExp): Promise<void> {
    const seen: string[] = [];
    const end = performance.now() + LOOK_MS;
    for (let steps = 0; steps < STEPS_MIN || performance.now() < end; steps++) {
      const here = String(await this.#page.evaluate(NAME));
      if (typeof name === "string" ? here === name : name.test(here)) return;
      seen.push(here.slice(0, 30));
      await this.#page.keyboard.press("Tab");
    }
    throw new Error(`Tab never came to ${name}; it came to ${[...new Set(seen)].join(" | ")}`);
  }

  /** Presses a button or follows a link. */
  async press(name: string | RegExp): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Enter");
  }

  /** Writes into a field in place of what is there. */
  async write(name: string | RegExp, text: string): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Control+A");
    await this.#page.keyboard.type(text);
  }

  /** Ticks, or unticks. */
  async tick(name: string | RegExp): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Space");
  }

  /** Chooses from a list by its first letters. */
  async choose(name: string | RegExp, letters: string): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.type(letters);
  }
}
