import { expect, it } from "vitest";
import { Meter } from "../../../src/http/gateway/meter.ts";

const encode = (event: object) => new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`);
const START = encode({ type: "message_start", message: { usage: { input_tokens: 7, output_tokens: 1 } } });
const END = encode({ type: "message_delta", usage: { output_tokens: 5 } });

it("an answer's first event passes without a write, and its last one after the write of all tokens", async () => {
  const steps: string[] = [];
  const meter = new Meter({
    ...{ requestBytes: 100, dropsExtra: false, isStream: true, onResponse: () => {} },
    note: ({ input_tokens }) => void steps.push(`noted ${input_tokens}`),
    async count({ output_tokens }) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      steps.push(`stored ${output_tokens}`);
    },
  });
  for (const event of [START, END]) {
    expect(await meter.take(event)).toEqual(event);
    steps.push("passed");
  }
  expect(steps).toEqual(["noted 7", "passed", "stored 5", "passed"]);
});
