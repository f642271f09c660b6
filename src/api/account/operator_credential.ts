import { type Credential, findCredential } from "../../store/account/credential.ts";
import type { Deps } from "../call/services.ts";

/**
 * Finds the operator's stored password, or null. Waits until this start's password is stored, because the old one must
 * not work. Throws `unavailable` like operatorVersion().
 */
export async function operatorCredential(
  { db, authority }: Deps<"db" | "authority">,
): Promise<Credential | null> {
  await authority.operatorVersion();
  return await findCredential(db);
}
