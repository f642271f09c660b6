import { useState } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { Choice } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { say } from "../../parts/toast.tsx";

const HOUR_MS = 3_600_000;
const TIMES = [
  [String(HOUR_MS), "an hour"],
  [String(24 * HOUR_MS), "24 hours"],
  [String(7 * 24 * HOUR_MS), "7 days"],
  [String(31 * 24 * HOUR_MS), "31 days"],
] as const;

/** Puts a budget out of force for a while (contract 14). */
export function LiftForm({ budget, onClose }: { budget: Schemas["Budget"]; onClose: () => void }) {
  const [time, setTime] = useState<string>(String(HOUR_MS));
  const sent = useSend(async () => {
    const params = { path: { id: budget.id } };
    await ask(api.POST("/api/budgets/{id}/lift", { params, body: { for_ms: Number(time) } }));
    say("It is lifted: what waited for it goes on");
    onClose();
  });
  return (
    <DialogForm title={`Lift ${budget.name}`} action="Lift it" sent={sent} onClose={onClose} narrow>
      <p>It holds and ends nothing meanwhile. What is used goes on to be counted.</p>
      <Choice label="For" value={time} onChange={setTime} options={TIMES} />
    </DialogForm>
  );
}
