import { type Credential, findCredential } from "../../store/account/credential.ts";
import type { Deps } from "../call/services.ts";

/**
 * The operator's stored password, once it is known to be the one that this start was given: until then the old one must count
 * nowhere. Null when there is none. Throws `unavailable` as operatorVersion().
 */
export async function operatorCredential(
  { db, authority }: Deps<"db" | "authority">,
): Promise<Credential | null> {
  await authority.operatorVersion();
  return await findCredential(db);
}
