/** A scrypt hash as a PHC string: cost as ln, r and p, then salt and hash in Base64 without padding (contract 2). */
export const SCRYPT_PHC =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
