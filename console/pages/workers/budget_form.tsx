import { useState } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { workers } from "../../live/workers.ts";
import { Choice, TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { PERIOD_CHOICES, useDepartmentNames } from "./budget_text.ts";

type Budget = Schemas["Budget"];

const UNITS = [["usd", "US dollars, estimated"], ["runs", "runs"], ["tokens", "tokens"], [
  "minutes",
  "minutes",
]] as const;
const ACTIONS = [
  ["hold", "Nothing new starts"],
  ["stop", "What runs is ended, too"],
] as const;

interface FormProps {
  budget: Budget | null;
  /** What it is for, to begin with. */
  target: string;
  onClose: () => void;
}

/** A new budget, or changes to one. */
export function BudgetForm({ budget, target: first, onClose }: FormProps) {
  const [name, setName] = useState(budget?.name ?? "");
  const [target, setTarget] = useState(first);
  const [unit, setUnit] = useState<Budget["unit"]>(budget?.unit ?? "usd");
  const [limit, setLimit] = useState(budget === null ? "" : String(budget.limit));
  const [period, setPeriod] = useState<Budget["period"]>(budget?.period ?? "month");
  const [soft, setSoft] = useState(String(budget?.soft ?? 80));
  const [action, setAction] = useState<Budget["action"]>(budget?.action ?? "hold");
  const targets = useTargets(target);
  const sent = useSend(async () => {
    const body = { name, target, unit, limit: Number(limit), period, soft: Number(soft), action };
    if (budget === null) await ask(api.POST("/api/budgets", { body }));
    else await ask(api.PUT("/api/budgets/{id}", { params: { path: { id: budget.id } }, body }));
    onClose();
  });
  const { refusal } = sent;
  return (
    <DialogForm
      title={budget === null ? "New budget" : budget.name}
      action={budget === null ? "Make the budget" : "Save"}
      sent={sent}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        value={name}
        onInput={setName}
        refusal={refusal}
        required
        autofocus
      />
      <Choice label="For" value={target} onChange={setTarget} options={targets} />
      <TextField label="At most" name="limit" value={limit} onInput={setLimit} refusal={refusal} required />
      <Choice
        label="Of"
        value={unit}
        onChange={(value) => setUnit(value as Budget["unit"])}
        options={UNITS}
      />
      <Choice
        label="Counted"
        value={period}
        onChange={(value) => setPeriod(value as Budget["period"])}
        options={PERIOD_CHOICES}
      />
      <Choice
        label="When it is reached"
        value={action}
        onChange={(value) => setAction(value as Budget["action"])}
        options={ACTIONS}
      />
      <TextField
        label="Say so at percent"
        name="soft"
        value={soft}
        onInput={setSoft}
        refusal={refusal}
        required
      />
    </DialogForm>
  );
}

/** Everything that a budget can count for. */
function useTargets(current: string): [string, string][] {
  const engines = useResource("engines", (signal) => ask(api.GET("/api/engines", { signal }))).data ?? [];
  const departments = useDepartmentNames();
  const all: [string, string][] = [
    ["global", "Everything"],
    ...[...departments].map(([id, name]) => [`department:${id}`, `Department ${name}`] as [string, string]),
    ...(workers.value ?? []).map(({ id, name }) => [`worker:${id}`, `Worker ${name}`] as [string, string]),
    ...engines.map(({ name }) => [`engine:${name}`, `Engine ${name}`] as [string, string]),
  ];
  if (!all.some(([key]) => key === current)) all.push([current, current]);
  return all;
}
