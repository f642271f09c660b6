import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, ask, askAll, askPage, type Schemas } from "../../live/api.ts";
import { useAddress } from "../../live/address.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { timeText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { now } from "../../live/clock.ts";
import { BudgetForm } from "./budget_form.tsx";
import { Engines } from "./engine_cards.tsx";
import { LiftForm } from "./budget_lift_form.tsx";
import { amountWords, periodWords, targetWords, useDepartmentNames, usedWords } from "./budget_text.ts";

export type Budget = Schemas["Budget"];

const PAGE_SIZE = 100;
const SHOWN_MAX = 1_000;

/** What runs may use, what they have used of it, and the engines that they use (contract 14). */
export function BudgetsPage() {
  const [{ for: target }, change] = useAddress("for");
  const [edited, setEdited] = useState<Budget | "new" | null>(
    target === "" || !may("write:budgets") ? null : "new",
  );
  const [lifted, setLifted] = useState<Budget | null>(null);
  const read = useResource("budgets", readBudgets, ({ kind }) => /^(budget|execution|engine)\./.test(kind));
  const budgets = read.data;
  function close(): void {
    setEdited(null);
    setLifted(null);
    change({ for: "" });
    read.reload();
  }
  return (
    <>
      <Heading title="Budgets and engines">
        {may("write:budgets") && (
          <button type="button" class="primary" onClick={() => setEdited("new")}>
            <Plus size={16} aria-hidden="true" /> New budget
          </button>
        )}
      </Heading>
      <div class="scrolled">
        <section>
          <h2>Budgets</h2>
          {budgets === undefined
            ? <Waiting refusal={read.refusal} />
            : budgets.length === 0
            ? (
              <Empty title="There is no budget.">
                <p>
                  Runs may use what they need. A budget says how many runs, tokens, minutes or dollars there
                  may be, and holds what would be more.
                </p>
              </Empty>
            )
            : (
              <ul class="cards">
                {budgets.map((budget) => (
                  <BudgetCard
                    key={budget.id}
                    budget={budget}
                    edit={() => setEdited(budget)}
                    lift={() => setLifted(budget)}
                    reload={read.reload}
                  />
                ))}
              </ul>
            )}
        </section>
        <Engines />
      </div>
      {edited !== null && (
        <BudgetForm
          budget={edited === "new" ? null : edited}
          target={edited === "new" ? target || "global" : edited.target}
          onClose={close}
        />
      )}
      {lifted !== null && <LiftForm budget={lifted} onClose={close} />}
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
  const { id, name, target, used, reserved, limit, unit, state, resets_at, lifted_until, action, period } =
    budget;
  const departments = useDepartmentNames();
  const lifted = lifted_until !== null && lifted_until > now.value;
  const params = { path: { id } };
  const words = usedWords(budget);
  async function force(): Promise<void> {
    await attempt(
      () => ask(api.POST("/api/budgets/{id}/lift", { params, body: { for_ms: 0 } })),
      "It holds again",
    );
    reload();
  }
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Delete ${name}?`,
      text: "It holds nothing any more: what waited for it goes on. What was used stays counted for others.",
      action: "Delete the budget",
    });
    if (!yes) return;
    await attempt(() => ask(api.DELETE("/api/budgets/{id}", { params })), "Deleted");
    reload();
  }
  return (
    <li class="card">
      <div class="card-head">
        <h3>{name}</h3>
        <Status of={lifted ? "lifted" : state} />
      </div>
      <p class="quiet">
        {targetWords(target, departments)}, {periodWords(period)}
        {action === "stop" && ", ends what runs"}
      </p>
      <Meter label={name} part={limit === 0 ? 1 : (used + reserved) / limit} text={words} state={state} />
      <p>
        {words}
        {reserved > 0 && <span class="quiet">, and {amountWords(reserved, unit)} for what runs now</span>}
      </p>
      {lifted && <p class="hint">It holds nothing until {timeText(lifted_until)}.</p>}
      {!lifted && state === "hard" && (
        <p class="hint">
          Nothing new starts{resets_at === null ? " until it is raised or lifted." : (
            <>
              . There is room again <Ago at={resets_at} />.
            </>
          )}
        </p>
      )}
      {may("write:budgets") && (
        <div class="actions">
          {lifted
            ? <Act class="small" run={() => force()}>Hold again</Act>
            : <button type="button" class="small" onClick={lift} aria-label={`Lift ${name}`}>Lift</button>}
          <button type="button" class="small" onClick={edit} aria-label={`Change ${name}`}>Change</button>
          <Act
            class="small danger"
            run={() => remove()}
            label={`Delete ${name}`}
          >
            Delete
          </Act>
        </div>
      )}
    </li>
  );
}

function readBudgets(signal: AbortSignal): Promise<Budget[]> {
  return askAll((cursor) => {
    const query = { page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    return askPage(api.GET("/api/budgets", { params: { query }, signal }));
  }, SHOWN_MAX);
}
