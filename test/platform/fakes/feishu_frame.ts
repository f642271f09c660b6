// Frames of Feishu's long connection, written independently of the service's, so that both don't share a defect.
export interface FakeFrame {
  service: number;
  method: number;
  headers: Record<string, string>;
  payload: string | Uint8Array;
}

/** Builds a frame with all required fields and one optional field. */
export function frameBytes({ service, method, headers, payload }: FakeFrame): Uint8Array<ArrayBuffer> {
  const pairs = Object.entries(headers).map(([key, value]) =>
    bytesField(5, joined([textField(1, key), textField(2, value)]))
  );
  const numbers = [numberField(1, 7), numberField(2, 300), numberField(3, service), numberField(4, method)];
  return joined([...numbers, ...pairs, payloadField(payload), textField(9, "kept")]);
}

/** Throws Error for a missing required field, or a frame other than the sent one. */
export function readFrame(bytes: Uint8Array): FakeFrame & { payload: string; logIdNew: string } {
  const numbers = new Map<number, number>();
  const texts = new Map<number, string>();
  const headers: Record<string, string> = {};
  eachField(bytes, (number, value) => {
    if (typeof value === "number") numbers.set(number, value);
    else if (number !== 5) texts.set(number, new TextDecoder().decode(value));
    else {
      const pair = ["", "", ""];
      eachField(value, (part, text) => pair[part] = new TextDecoder().decode(text as Uint8Array));
      headers[pair[1] ?? ""] = pair[2] ?? "";
    }
  });
  for (const field of [1, 2, 3, 4]) {
    if (!numbers.has(field)) throw new Error(`the field ${field} is missing`);
  }
  return {
    service: numbers.get(3) ?? 0,
    method: numbers.get(4) ?? 0,
    headers,
    payload: texts.get(8) ?? "",
    logIdNew: texts.get(9) ?? "",
  };
}

function eachField(bytes: Uint8Array, call: (number: number, value: number | Uint8Array) => void): void {
  const view = { at: 0 };
  const number = () => {
    let value = 0;
    for (let shift = 1;; shift *= 128) {
      const byte = bytes[view.at++];
      if (byte === undefined) throw new Error("the frame is cut");
      value += (byte % 128) * shift;
      if (byte < 128) return value;
    }
  };
  while (view.at < bytes.length) {
    const tag = number();
    if (tag % 8 === 0) {
      call(tag >> 3, number());
      continue;
    }
    if (tag % 8 !== 2) throw new Error(`wire type ${tag % 8}`);
    const length = number();
    call(tag >> 3, bytes.subarray(view.at, view.at + length));
    view.at += length;
  }
}

function numberBytes(value: number): number[] {
  return value < 128 ? [value] : [value % 128 + 128, ...numberBytes(Math.floor(value / 128))];
}

function numberField(field: number, value: number): Uint8Array {
  return new Uint8Array([field << 3, ...numberBytes(value)]);
}

function textField(field: number, text: string): Uint8Array {
  return bytesField(field, new TextEncoder().encode(text));
}

function payloadField(payload: string | Uint8Array): Uint8Array {
  return typeof payload === "string" ? textField(8, payload) : bytesField(8, payload);
}

function bytesField(field: number, bytes: Uint8Array): Uint8Array {
  return joined([new Uint8Array([field << 3 | 2, ...numberBytes(bytes.length)]), bytes]);
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
