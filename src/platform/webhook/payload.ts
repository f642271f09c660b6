/** Reads fields of a JSON value whose form nothing guarantees. An absent field is "". */
export class Payload {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  /** Returns the part at a path of names, such as `issue.user`. */
  at(path: string): Payload {
    let value = this.#value;
    for (const name of path.split(".")) {
      const isObject = typeof value === "object" && value !== null && Object.hasOwn(value, name);
      value = isObject ? (value as Record<string, unknown>)[name] : undefined;
    }
    return new Payload(value);
  }

  text(path: string): string {
    const value = this.at(path).#value;
    return typeof value === "string" ? value : "";
  }

  /** Returns a whole number as text. */
  id(path: string): string {
    const value = this.at(path).#value;
    return typeof value === "number" && Number.isSafeInteger(value) ? String(value) : "";
  }

  is(path: string): boolean {
    return this.at(path).#value === true;
  }

  has(path: string): boolean {
    const value = this.at(path).#value;
    return typeof value === "object" && value !== null;
  }

  list(path: string): Payload[] {
    const value = this.at(path).#value;
    return Array.isArray(value) ? value.map((one) => new Payload(one)) : [];
  }
}
