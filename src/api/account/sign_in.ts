import type { Clock } from "../../base/clock.ts";
import { type OidcConfig, OidcSignIn } from "./oidc.ts";
import { OneTimeCodes } from "./one_time_codes.ts";

/** The services for sign-in without a password. `boot` creates them once. */
interface SignIn {
  codes: OneTimeCodes;
  oidc: OidcSignIn | null;
  /** Public address of this service: `server.public_url`, else the listening address. */
  publicUrl: () => string;
  /** Suffix of the cookie names. Cookies ignore ports, and two services may share a host. */
  cookieSuffix: string;
}

export interface SignInDeps {
  signIn: SignIn;
}

interface SignInOptions {
  oidc: OidcConfig;
  key: () => Uint8Array;
  clock: Clock;
  /** A random id that stays with the database. */
  operatorId: string;
  publicUrl: string;
  listensAt: () => string;
}

/** Creates the sign-in services without a request to the provider. */
export function createSignIn({ oidc, key, clock, operatorId, publicUrl, listensAt }: SignInOptions): SignIn {
  return {
    codes: new OneTimeCodes(clock),
    oidc: oidc.issuer === "" ? null : new OidcSignIn(oidc, key, clock),
    publicUrl: () => publicUrl.replace(/\/$/, "") || listensAt(),
    cookieSuffix: operatorId.slice(-8),
  };
}
