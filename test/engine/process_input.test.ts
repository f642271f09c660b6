import { expect, it } from "vitest";
import { ProcessInput } from "../../src/engine/process/process_input.ts";
import { waitUntil } from "../harness/wait.ts";

it("ProcessInput bounds the texts for a program that does not read its stdin [CHD-6]", async () => {
  const released = Promise.withResolvers<void>();
  const got: string[] = [];
  let closed = 0;
  const input = new ProcessInput(
    new WritableStream<Uint8Array>({
      async write(chunk) {
        await released.promise;
        got.push(new TextDecoder().decode(chunk));
      },
      close: () => void closed++,
    }),
  );
  const count = 100_000;
  for (let no = 0; no < count; no++) input.write(`${no}\n`);
  released.resolve();
  await waitUntil("it is closed", () => closed === 1);
  input.write("more\n");
  input.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(got.length).toBeLessThan(count / 2);
  expect(got).toEqual(got.map((_text, no) => `${no}\n`));
  expect(closed).toBe(1);
});
