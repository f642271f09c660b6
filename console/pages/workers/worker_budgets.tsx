import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { LinkButton } from "../../parts/button.tsx";
import { ShortListing } from "../../parts/listing.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Section } from "../../parts/page.tsx";
import { BudgetNotice } from "./budget_notice.tsx";
import { calculateShare, formatTarget, formatUse, PERIODS } from "./budget_text.ts";
import { type Department, listAncestors, useDepartments } from "./department_tree.ts";

type Worker = Schemas["Worker"];

const BUDGETS_READ = 100;

/** The budgets that apply to a worker: its own, and those of its departments, its engine and all runs. */
export function WorkerBudgets({ worker }: { worker: Worker }) {
  const departments = useDepartments().data;
  if (departments === undefined || !hasScope("read:budgets")) return null;
  return <Budgets worker={worker} departments={departments} />;
}

function Budgets({ worker, departments }: { worker: Worker; departments: Department[] }) {
  const ids = new Set(worker.departments.flatMap(({ id }) => listAncestors(departments, id)));
  const target = [
    `worker:${worker.id}`,
    ...[...ids].map((id) => `department:${id}`),
    ...(worker.engine === "" ? [] : [`engine:${worker.engine}`]),
    "global",
  ].join(",");
  const names = new Map(departments.map(({ id, name }) => [id, name]));
  const list = useGet(
    "/api/budgets",
    { query: { target, page_size: BUDGETS_READ } },
    /^(budget|execution)\./,
  );
  return (
    <Section
      title="Budgets"
      actions={
        <LinkButton href={`/console/budgets?for=worker:${worker.id}`} class="small" scope="write:budgets">
          New budget
        </LinkButton>
      }
    >
      <BudgetNotice target={target} />
      <ShortListing
        list={list}
        class="budget-lines"
        empty="No budget applies to this worker."
        row={(budget) => (
          <>
            <p>
              <Link href="/console/budgets">{budget.name}</Link>{" "}
              <span class="quiet">
                {formatTarget(budget.target, names)}, {PERIODS[budget.period]}: {formatUse(budget)}
              </span>
            </p>
            <Meter
              label={budget.name}
              share={calculateShare(budget)}
              text={formatUse(budget)}
              state={budget.state}
            />
          </>
        )}
      />
    </Section>
  );
}
