import { Link } from "wouter-preact";
import { api, askPage, type Schemas, type Worker } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Meter } from "../../parts/meter.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { periodWords, targetWords, useDepartmentNames, usedWords } from "./budget_text.ts";
import { above, useDepartments } from "./department_tree.ts";

const SHOWN_MAX = 100;

/** What a worker's runs may use: budgets of its own, of its departments, of its engine, and of all (contract 14). */
export function WorkerBudgets({ worker, engine }: { worker: Worker; engine: string }) {
  const trees = useDepartments().data;
  if (trees === undefined || !may("read:budgets")) return null;
  const departments = new Set(worker.departments.flatMap(({ id }) => above(trees, id)));
  const targets = [
    `worker:${worker.id}`,
    ...[...departments].map((id) => `department:${id}`),
    ...(engine === "" ? [] : [`engine:${engine}`]),
    "global",
  ];
  return <Budgets worker={worker} targets={targets} />;
}

function Budgets({ worker, targets }: { worker: Worker; targets: string[] }) {
  const names = useDepartmentNames();
  const read = useResource(
    targets.join(" "),
    (signal) => {
      const query = { target: targets.join(","), page_size: SHOWN_MAX };
      return askPage(api.GET("/api/budgets", { params: { query }, signal }));
    },
    ({ kind }) => /^(budget|execution)\./.test(kind),
  );
  const budgets = read.data?.items;
  return (
    <section>
      <div class="section-head">
        <h2>Budgets</h2>
        {may("write:budgets") && (
          <Link href={`/console/budgets?for=worker:${worker.id}`} class="button small">New budget</Link>
        )}
      </div>
      {budgets === undefined
        ? <Waiting refusal={read.refusal} />
        : budgets.length === 0
        ? <p class="quiet">None: its runs may use what they need.</p>
        : (
          <ul class="budget-lines">
            {budgets.map((one) => <BudgetLine key={one.id} budget={one} names={names} />)}
          </ul>
        )}
    </section>
  );
}

function BudgetLine({ budget, names }: { budget: Schemas["Budget"]; names: ReadonlyMap<string, string> }) {
  const { name, target, used, reserved, limit, state, period } = budget;
  const words = usedWords(budget);
  return (
    <li>
      <p>
        <Link href="/console/budgets">{name}</Link>{" "}
        <span class="quiet">{targetWords(target, names)}, {periodWords(period)}: {words}</span>
      </p>
      <Meter label={name} part={limit === 0 ? 1 : (used + reserved) / limit} text={words} state={state} />
    </li>
  );
}
