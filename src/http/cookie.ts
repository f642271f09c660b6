interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Seconds; 0 removes the cookie. */
  maxAge: number;
  sameSite: "Strict" | "Lax";
  /** Restricts the cookie to TLS. */
  secure: boolean;
}

/** Formats an HttpOnly Set-Cookie header. `value` must not contain separators. */
export function setCookie({ name, value, path, maxAge, sameSite, secure }: Cookie): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=${sameSite}${
    secure ? "; Secure" : ""
  }`;
}

/** Reads a cookie of a request, or null. */
export function cookieOf(request: Request, name: string): string | null {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const [key = "", ...value] = pair.split("=");
    if (key.trim() === name) return value.join("=").trim();
  }
  return null;
}
