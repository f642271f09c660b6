import { api, load, type Schemas } from "../../live/api.ts";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { showToast } from "../../parts/toast.tsx";

const HOUR_MS = 3_600_000;
const DURATIONS = [
  [String(HOUR_MS), "1 hour"],
  [String(24 * HOUR_MS), "24 hours"],
  [String(7 * 24 * HOUR_MS), "7 days"],
  [String(31 * 24 * HOUR_MS), "31 days"],
] as const;

export function BudgetLiftForm({ budget, onClose }: { budget: Schemas["Budget"]; onClose: () => void }) {
  const form = useForm({
    initial: { for_ms: String(HOUR_MS) },
    async send({ for_ms }) {
      const params = { path: { id: budget.id } };
      await load(api.POST("/api/budgets/{id}/lift", { params, body: { for_ms: Number(for_ms) } }));
      showToast("Budget lifted");
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={`Lift ${budget.name}`}
      action="Lift budget"
      onClose={onClose}
      narrow
      fields={[{ name: "for_ms", label: "Duration", options: DURATIONS }]}
    >
      <p>The budget is not enforced during this time, and waiting tasks start. Use is still counted.</p>
    </FormDialog>
  );
}
