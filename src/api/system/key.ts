import { randomBytes } from "node:crypto";
import { keyBytes, keyFingerprint } from "../../base/token.ts";
import { prepareWhole } from "../../base/whole_file.ts";
import { conflict } from "../../domain/call/error.ts";
import type { KeyRotated } from "../../domain/system/system.ts";
import { record } from "../../store/events/journal.ts";
import { endEverySignature } from "../../store/account/key.ts";
import { saveSetting } from "../../store/db/setting.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { refuseRuns } from "./system.ts";

const KEY_BYTES = 48;

/**
 * Replaces the signing key, which ends all logins and tokens (contract 8.16). Throws `forbidden` for runs. Throws
 * `conflict` while the configuration sets the key, and during open runs, whose tokens would end.
 */
export async function rotateKey(
  { db, clock, paths, auth, authority }: Deps<"db" | "clock" | "paths" | "auth" | "authority">,
  call: Call,
): Promise<Answer<KeyRotated>> {
  refuseRuns(call, "rotate the signing key");
  if (auth.jwt_secret !== "") {
    throw conflict(
      "Cannot rotate the signing key: auth.jwt_secret sets it. Change it there and restart the service.",
    );
  }
  // A pending version would overwrite the one that replaceKey() sets.
  await authority.operatorVersion();
  const secret = randomBytes(KEY_BYTES).toString("base64url");
  const file = await prepareWhole(paths.secretKey, `${secret}\n`);
  const now = clock.now();
  try {
    await db.writeOr(
      [
        ...endEverySignature(now),
        ...(db.remote ? [saveSetting("key_fingerprint", keyFingerprint(keyBytes(secret)))] : []),
        record(now, { kind: "system.key_rotated", actor: call.caller.subject }),
      ],
      () => conflict("Cannot rotate the signing key: runs are open. Wait until they end, or cancel them."),
    );
  } catch (error) {
    await file.drop();
    throw error;
  }
  // Runs that start from now on get a token of the new key.
  authority.replaceKey(keyBytes(secret));
  await file.place();
  return answer({ rotated_at: now });
}
