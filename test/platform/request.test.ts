import { expect, it } from "vitest";
import { readAnswerText } from "../../src/platform/request.ts";

it("readAnswerText() reads a whole answer, joins split characters, and stops at its limit", async () => {
  const bytes = new TextEncoder().encode("grüße 🙂");
  const split = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  expect(await readAnswerText(new Response(split))).toBe("grüße 🙂");
  expect(await readAnswerText(new Response(null))).toBe("");
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1_000_000;
      controller.enqueue(new Uint8Array(1_000_000));
    },
  });
  await expect(readAnswerText(new Response(endless))).rejects.toThrow(/more than 16777216 bytes/);
  expect(sent).toBeLessThan(20_000_000);
});
