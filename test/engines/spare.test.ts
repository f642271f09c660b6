import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { waitUntil } from "../harness/wait.ts";
import { describePins, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

const fault = await findBoxFault(BOX_SETTINGS);
const WARM = { keep: "60s", max: 4, spare: 1 };
const PINS = selectPins().filter(({ kind }) => kind === "claude" || kind === "codex")
  .map((pin) => ({ ...pin, warm: WARM }));

function listMarks(worker: string): string[] {
  const marks = listWorkerProcesses(worker).map((pid) =>
    /\0SVC_RUN_ID=([^\0]*)/.exec(Deno.readTextFileSync(`/proc/${pid}/environ`))?.[1] ?? ""
  );
  return [...new Set(marks)];
}

describePins("$kind $version as a spare process (contract 19.5)", PINS, 300_000, (pin) => {
  for (const box of [false, true]) {
    it.skipIf(box && fault !== null)(
      `opens a new conversation with its tools, token and variables${box ? ", in its box" : ""} [CHD-15]`,
      async () => {
        await using rig = await Rig.open(pin, box ? { box: "host" } : {});
        await rig.say("This is [[id:first-word]].");
        const known = listMarks(rig.worker.id).slice(0, 1);
        for (let found = false; !found;) {
          await waitUntil("a spare process waits", () => listMarks(rig.worker.id).length > known.length);
          const marks = listMarks(rig.worker.id);
          const { id } = await rig.app.call("POST /api/local/sessions", { worker_id: rig.worker.id });
          const ids = "$SVC_RUN_ID $SVC_SESSION_KEY $SVC_MESSAGE_ID $SVC_EXECUTION_ID";
          const content =
            `Work. [[call:worker_list {}]] [[tool:echo ${ids} > ids.txt; svc ctl worker list -q > list.txt]]`;
          await rig.app.call(`POST /api/local/sessions/${id}/messages`, { content });
          await rig.app.settle(170_000);
          const { execution, log } = await rig.latest();
          expect(execution, log).toMatchObject({ status: "completed", session_key: `local:${id}` });
          const [mark = "", ...own] = (await Deno.readTextFile(rig.file("ids.txt"))).trim().split(" ");
          expect(own, log).toEqual([`local:${id}`, execution.message_id, execution.id]);
          expect(await Deno.readTextFile(rig.file("list.txt")), log).toBe(`${rig.worker.id}\n`);
          expect(log).toMatch(new RegExp(`Z < .*${rig.worker.id}`));
          const again = "[[recall]]";
          await rig.app.call(`POST /api/local/sessions/${id}/messages`, { content: again });
          await rig.app.settle(170_000);
          const recalled = (await rig.latest()).execution;
          expect(recalled.result).not.toContain("first-word");
          expect(recalled.session_id).toBe(execution.session_id);
          found = marks.includes(mark) && !known.includes(mark);
          known.push(mark);
        }
        expect(await rig.leftovers()).toEqual([]);
      },
    );
  }
});
