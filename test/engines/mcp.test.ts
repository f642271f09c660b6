import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { startHttpServer } from "../harness/fakes/mcp_server.ts";
import { findText } from "../harness/model/found_text.ts";
import { waitForValue } from "../harness/wait.ts";
import { describePins, selectPins } from "./pins.ts";
import { Rig, type WarmPin } from "./rig.ts";

const CANARY = "parcel-canary-$HOME-'0'-0123456789";
// Engines may replace variables in headers.
const HEADER_CANARY = "parcel-canary-header-0123456789";
const STAYING = ["claude", "codex"];
const fault = await findBoxFault(BOX_SETTINGS);

const ways = selectPins().flatMap((pin): (WarmPin & { way: string; box?: "host" })[] => {
  const all = [
    { ...pin, way: "a turn each" },
    ...(STAYING.includes(pin.kind) ? [{ ...pin, way: "staying open", warm: {} }] : []),
  ];
  const boxed = all.slice(-1).map((one) => ({ ...one, way: `${one.way}, in a box`, box: "host" as const }));
  return [...all, ...boxed];
});

/** Gives the worker of a rig one server of each form. */
async function addServers(rig: Rig, url: string) {
  await rig.app.call("PUT /api/secrets/parcel-key", { value: CANARY, workers: [rig.worker.id] });
  await rig.app.call("PUT /api/secrets/price-key", { value: HEADER_CANARY, workers: [rig.worker.id] });
  await Deno.copyFile(new URL("../harness/fakes/mcp_server.ts", import.meta.url), rig.file("server.ts"));
  const command = [
    Deno.execPath(),
    "run",
    "-A",
    "--no-lock",
    "--no-config",
    rig.file("server.ts"),
    "a $HOME 'b'",
  ];
  // goose sends no headers.
  const headers = rig.kind === "goose" ? {} : { "x-parcel-key": "secret:price-key" };
  await rig.app.call(`PUT /api/workers/${rig.worker.id}`, {
    mcp: {
      weights: { command, env: { PARCEL_KEY: "secret:parcel-key" } },
      prices: { url, headers },
    },
  });
}

describePins("$kind $version with the worker's MCP servers, $way", ways, 300_000, (pin) => {
  it.skipIf(pin.box !== undefined && fault !== null)(
    "calls a tool over stdio and one over HTTP, with secrets that no log and file has",
    async () => {
      await using server = startHttpServer();
      await using rig = await Rig.open(pin, {
        permissions: "edit",
        timeout: "165s",
        ...(pin.box === undefined ? {} : { box: pin.box }),
      });
      // The first run gives the directory to the user of the box.
      if (pin.box !== undefined) await rig.say("Say hello.");
      await addServers(rig, server.url);
      const { execution, log } = await rig.say(
        `Look. [[call:weigh_parcel {"parcel":"p1"}]] [[call:price_parcel {"parcel":"p1"}]]`,
      );
      expect(execution, log).toMatchObject({ status: "completed" });
      expect(log).toContain("the weight of p1");
      expect(log).toContain("the price of p1");
      const weighed = JSON.parse(await Deno.readTextFile(rig.file("weighed.json")));
      expect(weighed).toMatchObject({ parcel: "p1", key: CANARY, args: ["a $HOME 'b'"] });
      expect(weighed.run).not.toBe("");
      const keys = [...server.keys];
      expect(keys).toEqual([pin.kind === "goose" ? "" : HEADER_CANARY]);
      await Deno.remove(rig.file("weighed.json"));
      for (const secret of [CANARY, HEADER_CANARY]) {
        expect(await findText(rig.app.dataDir, secret)).toEqual([]);
      }
      const shown = await rig.say(
        `Show. [[call:weigh_parcel {"parcel":"show"}]] [[call:price_parcel {"parcel":"show"}]]`,
      );
      expect(shown.log).toMatch(/the weight of show is 7\*+/);
      expect(JSON.stringify(shown)).not.toContain("parcel-canary");
      if (!("warm" in pin)) expect(await rig.leftovers()).toEqual([]);
    },
  );
});

const ASKING = selectPins().filter(({ kind }) => STAYING.includes(kind));

describePins("$kind $version with permissions: ask and MCP servers", ASKING, 300_000, (pin) => {
  it("asks before a call of the worker's server, and calls nothing after a refusal", async () => {
    await using server = startHttpServer();
    await using rig = await Rig.open(pin, { permissions: "ask" });
    await addServers(rig, server.url);
    for (const [given, count] of [["Allow", 1], ["Deny", 1]] as const) {
      await rig.send(`Look. [[call:price_parcel {"parcel":"${given}"}]] [[text:DONE]]`);
      const question = await waitForValue(async () => {
        const [open] = await rig.app.call("GET /api/questions?status=open");
        return open ?? null;
      }, 15_000);
      expect(question).toMatchObject({ default: "Deny", arguments: expect.stringContaining(given) });
      expect(server.keys).toHaveLength(given === "Allow" ? 0 : 1);
      await rig.app.call(`POST /api/questions/${question.id}/answer`, { answer: given });
      await rig.app.settle(170_000);
      const { execution, log } = await rig.latest();
      expect(execution, log).toMatchObject({ status: "completed", result: expect.stringContaining("DONE") });
      expect(server.keys, log).toHaveLength(count);
    }
  });
});
