/** A cookie that a response sets. */
interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Seconds; 0 removes it. */
  maxAge: number;
  sameSite: "Strict" | "Lax";
  /** Behind TLS it goes nowhere else. */
  secure: boolean;
}

/** The header Set-Cookie; no script of a page ever reads such a cookie. Values are of our making, without characters that end one. */
export function setCookie({ name, value, path, maxAge, sameSite, secure }: Cookie): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=${sameSite}${
    secure ? "; Secure" : ""
  }`;
}

/** The value of a request's cookie, or null. */
export function cookieOf(request: Request, name: string): string | null {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const [key = "", ...value] = pair.split("=");
    if (key.trim() === name) return value.join("=").trim();
  }
  return null;
}
