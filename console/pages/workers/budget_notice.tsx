import { Link } from "wouter-preact";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Notice } from "../../parts/notice.tsx";

const BUDGETS_READ = 100;

/** Says before the first task that budgets are used up. `target` lists what they limit, such as "global,worker:<id>". */
export function BudgetNotice({ target }: { target: string }) {
  return hasScope("read:budgets") ? <UsedUp target={target} /> : null;
}

function UsedUp({ target }: { target: string }) {
  const list = useGet(
    "/api/budgets",
    { query: { target, page_size: BUDGETS_READ } },
    /^(budget|execution)\./,
  );
  const names = (list.data ?? []).filter(({ state }) => state === "hard").map(({ name }) => `"${name}"`);
  if (names.length === 0) return null;
  return (
    <Notice tone="warn">
      New runs wait: {names.length === 1 ? "the budget" : "the budgets"} {names.join(" and ")}{" "}
      {names.length === 1 ? "is" : "are"} used up. <Link href="/console/budgets">Open budgets</Link>
    </Notice>
  );
}
