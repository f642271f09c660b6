import type { Execution } from "../../live/api.ts";
import { Fact } from "../../parts/facts.tsx";
import { manyText } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";

/** How the work was checked: whether it is good, and after how many rounds (contract 13). */
export function CheckFact({ verify: { status, attempts } }: Pick<Execution, "verify">) {
  if (attempts === 0) return null;
  return (
    <Fact name="Check">
      {status === null ? "not finished" : <Status of={status === "passed" ? "passed" : "rejected"} />},{" "}
      {manyText(attempts, "round")}
    </Fact>
  );
}
