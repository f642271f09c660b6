import type { Whoami } from "../../domain/account/login.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import { ROLES } from "../../domain/call/vocabulary.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Returns the caller and the caller's scopes. */
export function whoami(_needs: Deps<never>, { caller }: Call): Promise<Answer<Whoami>> {
  const { subject, person, scopes } = caller;
  // A token has no role, as it may hold fewer scopes than its owner.
  const role = person === null || person.by === "token"
    ? undefined
    : ROLES.find((one) => ROLE_SCOPES[one].join(" ") === scopes.join(" "));
  return Promise.resolve(answer({
    subject,
    user_id: person?.userId ?? null,
    name: person?.name ?? subject,
    role: role ?? null,
    scopes: [...scopes],
    by: person?.by ?? "run",
  }));
}
