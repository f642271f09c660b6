import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { describePins, selectPins } from "./pins.ts";
import { Rig, type WarmPin } from "./rig.ts";

const fault = await findBoxFault(BOX_SETTINGS);
const STAYING = ["claude", "codex"];
const WAYS = selectPins().flatMap((pin): (WarmPin & { way: string })[] => [
  { ...pin, way: "a turn each" },
  ...(STAYING.includes(pin.kind) ? [{ ...pin, way: "staying open", warm: {} }] : []),
]);

describePins("$kind $version in a box, $way", WAYS, 300_000, (pin) => {
  it.skipIf(fault !== null)(
    "edits a file, runs a command, calls svc and MCP, continues its session, and sees no key",
    async () => {
      await using rig = await Rig.open(pin, { box: "host", timeout: "165s" });
      const look = `cat ${rig.app.dataDir}/secret.key ${rig.app.dataDir}/svc.db > stolen.txt 2> refused.txt`;
      const { execution, log } = await rig.say(
        `Work. [[tool:echo hi > out.txt; svc ctl worker list -q > workers.txt; ${look}; true]]`,
      );
      expect(execution, log).toMatchObject({ status: "completed" });
      expect(await Deno.readTextFile(rig.file("out.txt"))).toBe("hi\n");
      expect(await Deno.readTextFile(rig.file("workers.txt")), log).toBe(`${rig.worker.id}\n`);
      expect(await Deno.readTextFile(rig.file("stolen.txt"))).toBe("");
      const mcp = await rig.say("Who is there? [[call:worker_list {}]]");
      expect(mcp.execution, mcp.log).toMatchObject({
        status: "completed",
        session_id: execution.session_id,
      });
      expect(mcp.log).toContain(rig.worker.id);
      expect(await rig.leftovers()).toEqual([]);
    },
  );
});
