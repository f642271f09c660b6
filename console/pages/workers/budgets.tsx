import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useAll } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { formatTime } from "../../parts/format.ts";
import { ShortListing } from "../../parts/listing.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Section } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { BudgetForm, BudgetLiftForm } from "./budget_form.tsx";
import { calculateShare, formatAmount, formatTarget, formatUse, PERIODS } from "./budget_text.ts";
import { Forecast } from "./budget_forecasts.tsx";
import { CostsHead } from "./costs_head.tsx";
import { useDepartmentNames } from "./department_tree.ts";
import { Engines } from "./engine_cards.tsx";

type Budget = Schemas["Budget"];

export function Page() {
  const [{ for: target }, change] = useAddress("for");
  const [edited, setEdited] = useState<Budget | "new" | null>(
    target === "" || !hasScope("write:budgets") ? null : "new",
  );
  const [lifting, setLifting] = useState<Budget | null>(null);
  const list = useAll("/api/budgets", {}, /^(budget|execution|engine)\./);
  function close(): void {
    setEdited(null);
    setLifting(null);
    change({ for: "" });
    list.reload();
  }
  return (
    <>
      <CostsHead current="/console/budgets">
        <Button scope="write:budgets" class="primary" icon={Plus} press={() => setEdited("new")}>
          New budget
        </Button>
      </CostsHead>
      <div class="scrolled">
        <Section title="Budgets">
          <ShortListing
            list={list}
            class="cards"
            row={(budget) => (
              <BudgetCard
                budget={budget}
                edit={() => setEdited(budget)}
                lift={() => setLifting(budget)}
                reload={list.reload}
              />
            )}
            empty={
              <Empty title="No budgets yet.">
                <p>A budget limits runs, tokens, minutes or dollars, and blocks new runs at its limit.</p>
              </Empty>
            }
          />
        </Section>
        <Engines />
      </div>
      {edited !== null && (
        <BudgetForm
          budget={edited === "new" ? null : edited}
          target={edited === "new" ? target || "global" : edited.target}
          onClose={close}
        />
      )}
      {lifting !== null && <BudgetLiftForm budget={lifting} onClose={close} />}
    </>
  );
}

interface CardProps {
  budget: Budget;
  edit: () => void;
  lift: () => void;
  reload: () => void;
}

function BudgetCard({ budget, edit, lift, reload }: CardProps) {
  const { id, name, target, reserved, unit, state, resets_at, lifted_until, action, period } = budget;
  const departments = useDepartmentNames();
  const lifted = lifted_until !== null && lifted_until > now.value;
  const params = { path: { id } };
  const use = formatUse(budget);
  return (
    <>
      <div class="card-head">
        <h3 title={name}>{name}</h3>
        <Status value={lifted ? "lifted" : state} />
      </div>
      <p class="quiet brief" title={formatTarget(target, departments)}>
        {formatTarget(target, departments)}, {PERIODS[period]}
        {action === "stop" && ", stops current runs"}
      </p>
      <Meter label={name} share={calculateShare(budget)} text={use} state={state} />
      <p>
        {use}
        {reserved > 0 && <span class="quiet">, {formatAmount(reserved, unit)} reserved for current runs
        </span>}
      </p>
      {(budget.forecast !== null || budget.runs_out_at !== null) && (
        <p class="quiet">
          Forecast: <Forecast budget={budget} />
        </p>
      )}
      {lifted && <p class="hint">Not enforced until {formatTime(lifted_until)}.</p>}
      {!lifted && state === "hard" && (
        <p class="hint">
          {resets_at === null ? "New runs are blocked. Raise the limit or lift the budget." : (
            <>
              New runs are blocked. Available again <Ago at={resets_at} />.
            </>
          )}
        </p>
      )}
      {hasScope("write:budgets") && (
        <div class="actions">
          {lifted
            ? (
              <Button
                class="small"
                press={() => load(api.POST("/api/budgets/{id}/lift", { params, body: { for_ms: 0 } }))}
                done="Budget enforced"
                after={reload}
              >
                Enforce again
              </Button>
            )
            : <Button class="small" press={lift} label={`Lift ${name}`}>Lift</Button>}
          <Button class="small" press={edit} label={`Edit ${name}`}>Edit</Button>
          <Button
            class="small danger"
            label={`Delete ${name}`}
            confirm={{
              title: `Delete ${name}?`,
              text:
                "The limit no longer applies. Tasks that it blocks can start. Other budgets are unchanged.",
              action: "Delete budget",
            }}
            press={() => load(api.DELETE("/api/budgets/{id}", { params }))}
            done="Deleted"
            after={reload}
          >
            Delete
          </Button>
        </div>
      )}
    </>
  );
}
