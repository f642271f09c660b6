import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Lease } from "../../src/runner/lease.ts";
import { RefusedError } from "../../src/runner/service_client.ts";
import { LogSender } from "../../src/runner/log_sender.ts";
import { RemoteRun } from "../../src/runner/remote_run.ts";
import { createTempDir } from "../harness/service/process.ts";
import { buildProblem, buildRunOptions, buildWireOrder, FakeService } from "../harness/fakes/fake_service.ts";

it("ServiceClient: only the service itself can refuse, and a 4xx of a proxy is retried (contract 18.6) [RUN-1]", async () => {
  const onTheWay = [
    new Response("<h1>Forbidden</h1>", { status: 403 }),
    new Response('{"error":"no"}', { status: 401 }),
    buildProblem(400, "invalid_request"),
  ];
  await using service = new FakeService(({ path }, times) =>
    path === "/gone" ? buildProblem(403, "forbidden") : onTheWay[times - 1] ?? Response.json({ fine: true })
  );
  const sending = { timeoutMs: 10_000 };
  expect((await service.link.postUntilAnswered("/claim", {}, sending)).value).toEqual({ fine: true });
  expect(service.asked.length).toBe(onTheWay.length + 1);
  await expect(service.link.postUntilAnswered("/gone", {}, sending)).rejects.toThrow(RefusedError);
});

it("ServiceClient: a file is requested until it is complete (contract 18.6)", async () => {
  const cut = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("a part that is longer than the whole"));
        setTimeout(() => controller.error(new Error("cut")), 20);
      },
    });
  await using service = new FakeService(({ path }, times) => {
    if (path === "/gone") return buildProblem(404, "not_found");
    return times === 1
      ? new Response("bad gateway", { status: 502 })
      : new Response(times === 2 ? cut() : "the whole");
  });
  await using folder = await createTempDir();
  const path = join(folder.path, "file");
  const { signal } = new AbortController();
  await service.link.download("/file", { path, signal });
  expect(await Deno.readTextFile(path)).toBe("the whole");
  await expect(service.link.download("/gone", { path, signal })).rejects.toThrow("not_found");
});

it("an outcome that the service rejects is reported as a failure, and texts are well-formed (contract 18.6)", async () => {
  await using service = new FakeService(({ path, text }) => {
    if (/\/(log\?|events$)/.test(path)) return Response.json({ size: 1_000_000 });
    return JSON.parse(text).outcome.failure === "" ? buildProblem(400, "invalid_request") : Response.json({});
  });
  await using folder = await createTempDir();
  const order = buildWireOrder(folder.path);
  const sentAt = { wall: Date.now(), monotonic: 0 };
  const lease = new Lease(systemClock, 60_000, sentAt);
  const run = new RemoteRun(buildRunOptions(service.link, folder.path), order, { epoch: 3, lease });
  await Deno.mkdir(order.work_dir, { recursive: true });
  const outcome = await run.run(new AbortController().signal);
  await run.reportEnd({ ...outcome, text: "half \ud83d and \0" }, null);
  const [whole, reduced, ...more] = service.of("/end").map(({ text }) => JSON.parse(text));
  expect(whole.outcome).toMatchObject({ status: "completed", text: "half \ufffd and \ufffd" });
  expect(reduced).toMatchObject({
    epoch: 3,
    outcome: { status: "failed", failure: "engine_error", text: "" },
  });
  expect(reduced.outcome.error).toContain("refused");
  expect(more).toEqual([]);
});

it("LogSender: resends a log that the service has lost (contract 18.6)", async () => {
  let kept = "";
  await using service = new FakeService(({ path, text }, times) => {
    if (times === 2) kept = "";
    const offset = Number(new URLSearchParams(path.split("?")[1]).get("offset"));
    if (offset <= kept.length) kept = kept.slice(0, offset) + text;
    return Response.json({ size: kept.length });
  });
  await using folder = await createTempDir();
  const path = join(folder.path, "log");
  const { signal } = new AbortController();
  const sender = new LogSender({ link: service.link, executionId: "e", epoch: 1, kind: "log", path, signal });
  await Deno.writeTextFile(path, "one ");
  await sender.flush();
  expect(kept).toBe("one ");
  await Deno.writeTextFile(path, "two", { append: true });
  await sender.flush();
  expect(kept).toBe("one two");
});

/** Sends the growing log of a run to a service that accepts everything. */
async function world() {
  const service = new FakeService(({ path, text }) => {
    const offset = Number(new URLSearchParams(path.split("?")[1]).get("offset"));
    return Response.json({ size: offset + text.length });
  });
  const folder = await createTempDir();
  const path = join(folder.path, "log");
  const { signal } = new AbortController();
  return {
    service,
    sender: new LogSender({ link: service.link, executionId: "e", epoch: 1, kind: "log", path, signal }),
    write: (bytes: string | Uint8Array) =>
      Deno.writeFile(path, typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes, {
        append: true,
      }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

it("LogSender: sends many small pieces in few requests, completely (contract 18.6)", async () => {
  await using w = await world();
  const parts = () => w.service.of("/log?");
  let said = "";
  for (let n = 0; parts().length < 2; n++) {
    said += `${n}\n`;
    await w.write(`${n}\n`);
    w.sender.send();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await w.sender.flush();
  expect(parts().map(({ text }) => text).join("")).toBe(said);
  expect(parts().length).toBeLessThan(10);
});
