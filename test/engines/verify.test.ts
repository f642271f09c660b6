import { join } from "node:path";
import { expect, it } from "vitest";
import { describePins, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

// Verification with real CLIs and a scripted model. `make test-engines` sets the variable.

const PATIENCE_MS = 600_000;

// The agent gets this output, and the scripted model follows it.
const CHECK = `echo "answer.txt says $(cat answer.txt)"
grep -q right answer.txt && exit 0
echo "It has to be right. [[tool:echo right > answer.txt]] [[recall]]"
exit 1
`;

describePins("$kind $version with a check (contract 13)", selectPins(), PATIENCE_MS, (pin) => {
  it("gets the failed check in the same session after a wrong answer, and then answers correctly", async () => {
    await using rig = await Rig.open(pin, { timeout: "9m" });
    const { app, worker } = rig;
    await Deno.mkdir(worker.work_dir, { recursive: true });
    await Deno.writeTextFile(join(worker.work_dir, "check.sh"), CHECK);
    const { message_id } = await app.call(`POST /api/local/sessions/${rig.session.id}/messages`, {
      content: "Say hello.",
    });
    await app.settle(PATIENCE_MS);
    const task = await app.call("POST /api/tasks", {
      message_id,
      worker_id: worker.id,
      instruction: "This is [[id:the-question]]. [[tool:echo wrong > answer.txt]] [[text:It is done.]]",
      type: "immediate",
      verify: { command: ["sh", "check.sh"], attempts: 2 },
    });
    await app.settle(PATIENCE_MS);
    const { execution, log } = await rig.latest();
    expect(execution, log).toMatchObject({
      task_id: task.id,
      status: "completed",
      verify: { status: "passed", attempts: 2 },
      result: expect.stringMatching(/recall: the-question \| user texts: 3/),
    });
    expect(await Deno.readTextFile(rig.file("answer.txt"))).toBe("right\n");
    // All attempts were one session, the conversation's.
    expect(await rig.contexts()).toMatchObject([{ session_id: execution.session_id }]);
    const [first] = (await app.call("GET /api/executions?page_size=2")).slice(1);
    expect(execution.session_id).toBe(first.session_id);
    // The log has the attempts in order.
    const told = [
      /echo wrong > answer\.txt/,
      /It is done\./,
      /\[checking the work: \["sh","check\.sh"\]\]/,
      /answer\.txt says wrong/,
      /\[check 1: exit code 1\]/,
      /\[its output goes back to the agent, 1 of 2\]/,
      /echo right > answer\.txt/,
      /recall: the-question/,
      /\[checking the work: /,
      /answer\.txt says right/,
      /\[check 2: exit code 0\]/,
      /\[completed\]/,
    ];
    let rest = log;
    for (const line of told) {
      const found = line.exec(rest);
      expect(found, `${line} in ${log}`).not.toBeNull();
      rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0));
    }
  });
});
