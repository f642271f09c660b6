// Frames are protobuf messages: numbers are varints, all else is bytes with a length.
const VARINT = 0;
const BYTES = 2;
const FIELD = { sequence: 1, log: 2, service: 3, method: 4, headers: 5, payload: 8 };
const HEADER = { key: 1, value: 2 };

interface Field {
  number: number;
  value: bigint | Uint8Array;
}

/** A frame with a ping or an event. Keeps unknown fields, which the acknowledgement returns. */
export class Frame {
  readonly #fields: readonly Field[];

  constructor(fields: readonly Field[]) {
    this.#fields = fields;
  }

  static ping(service: number): Frame {
    const numbers = [[FIELD.sequence, 0], [FIELD.log, 0], [FIELD.service, service], [FIELD.method, 0]];
    return new Frame([
      ...numbers.map(([number = 0, value = 0]) => ({ number, value: BigInt(value) })),
      buildHeader("type", "ping"),
    ]);
  }

  /** Throws Error for invalid bytes. */
  static decode(bytes: Uint8Array): Frame {
    return new Frame(parseFields(bytes));
  }

  get isData(): boolean {
    return this.#fields.find(({ number }) => number === FIELD.method)?.value === 1n;
  }

  get payload(): Uint8Array {
    const value = this.#fields.find(({ number }) => number === FIELD.payload)?.value;
    return value instanceof Uint8Array ? value : new Uint8Array();
  }

  /** Returns "" for a missing header. */
  header(name: string): string {
    for (const { number, value } of this.#fields) {
      if (number !== FIELD.headers || !(value instanceof Uint8Array)) continue;
      const pair = parseFields(value);
      const text = (wanted: number) => {
        const found = pair.find((field) => field.number === wanted)?.value;
        return found instanceof Uint8Array ? new TextDecoder().decode(found) : "";
      };
      if (text(HEADER.key) === name) return text(HEADER.value);
    }
    return "";
  }

  /** Builds the acknowledgement: the same frame with another payload. */
  answer(payload: Uint8Array): Frame {
    const others = this.#fields.filter(({ number }) => number !== FIELD.payload);
    return new Frame([...others, { number: FIELD.payload, value: payload }]);
  }

  encode(): Uint8Array<ArrayBuffer> {
    return encodeFields(this.#fields);
  }
}

function buildHeader(name: string, value: string): Field {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const pair = [{ number: HEADER.key, value: bytes(name) }, { number: HEADER.value, value: bytes(value) }];
  return { number: FIELD.headers, value: encodeFields(pair) };
}

function encodeFields(fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  const out: number[] = [];
  const writeVarint = (value: bigint) => {
    let rest = BigInt.asUintN(64, value);
    for (; rest > 0x7fn; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
    out.push(Number(rest));
  };
  for (const { number, value } of fields) {
    writeVarint(BigInt(number * 8 + (typeof value === "bigint" ? VARINT : BYTES)));
    if (typeof value === "bigint") writeVarint(value);
    else {
      writeVarint(BigInt(value.length));
      for (const byte of value) out.push(byte);
    }
  }
  return new Uint8Array(out);
}

function parseFields(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error("a frame of Feishu ends too early");
  };
  while (at < bytes.length) {
    const tag = Number(readVarint());
    const number = Math.floor(tag / 8);
    if (tag % 8 === VARINT) fields.push({ number, value: readVarint() });
    else if (tag % 8 === BYTES) {
      const length = Number(readVarint());
      if (at + length > bytes.length) throw new Error("a frame of Feishu ends too early");
      fields.push({ number, value: bytes.slice(at, at + length) });
      at += length;
    } else throw new Error(`a frame of Feishu has the wire type ${tag % 8}`);
  }
  return fields;
}
