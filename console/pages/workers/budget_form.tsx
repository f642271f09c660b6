import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { workers } from "../../live/workers.ts";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { showToast } from "../../parts/toast.tsx";
import { ACTIONS, PERIODS, UNITS } from "./budget_text.ts";
import { useDepartmentNames } from "./department_tree.ts";

type Budget = Schemas["Budget"];

interface FormProps {
  budget: Budget | null;
  /** The initial target. */
  target: string;
  onClose: () => void;
}

export function BudgetForm({ budget, target, onClose }: FormProps) {
  const form = useForm({
    initial: {
      name: budget?.name ?? "",
      target,
      unit: budget?.unit ?? "usd" as string,
      limit: budget === null ? "" : String(budget.limit),
      period: budget?.period ?? "month" as string,
      soft: String(budget?.soft ?? 80),
      action: budget?.action ?? "hold" as string,
    },
    async send(values) {
      const body = {
        ...values,
        limit: Number(values.limit),
        soft: Number(values.soft),
      } as Schemas["BudgetCreate"];
      if (budget === null) await load(api.POST("/api/budgets", { body }));
      else await load(api.PUT("/api/budgets/{id}", { params: { path: { id: budget.id } }, body }));
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={budget === null ? "New budget" : budget.name}
      action={budget === null ? "Create budget" : "Save"}
      onClose={onClose}
      fields={[
        { name: "name", label: "Name", required: true, autofocus: true },
        { name: "target", label: "Applies to", options: useTargets(form.values.target) },
        { name: "limit", label: "Limit", required: true },
        { name: "unit", label: "Unit", options: Object.entries(UNITS) },
        { name: "period", label: "Period", options: Object.entries(PERIODS) },
        { name: "action", label: "When exceeded", options: Object.entries(ACTIONS) },
        { name: "soft", label: "Warning threshold (%)", required: true },
      ]}
    />
  );
}

function useTargets(current: string): [string, string][] {
  const engines = useGet("/api/engines", {}).data ?? [];
  const all: [string, string][] = [
    ["global", "All runs"],
    ...[...useDepartmentNames()].map((
      [id, name],
    ): [string, string] => [`department:${id}`, `Department ${name}`]),
    ...(workers.value ?? []).map(({ id, name }): [string, string] => [`worker:${id}`, `Worker ${name}`]),
    ...engines.map(({ name }): [string, string] => [`engine:${name}`, `Engine ${name}`]),
  ];
  if (!all.some(([key]) => key === current)) all.push([current, current]);
  return all;
}

const HOUR_MS = 3_600_000;
const DURATIONS = [
  [String(HOUR_MS), "1 hour"],
  [String(24 * HOUR_MS), "24 hours"],
  [String(7 * 24 * HOUR_MS), "7 days"],
  [String(31 * 24 * HOUR_MS), "31 days"],
] as const;

export function BudgetLiftForm({ budget, onClose }: { budget: Budget; onClose: () => void }) {
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
      title={`Lift the budget "${budget.name}"`}
      action="Lift budget"
      onClose={onClose}
      narrow
      fields={[{ name: "for_ms", label: "Duration", options: DURATIONS }]}
    >
      <p>The budget is not enforced during this time, and waiting tasks start. Use is still counted.</p>
    </FormDialog>
  );
}
