/**
 * The meaning of `format` wherever a schema is checked: in the router, the SDK and `capstan check`. Formats are
 * asserted for inputs, because an error costs nothing at that point. For outputs they are only annotations: the answer
 * has been paid for, and an address with an umlaut is no reason to discard it. Every format takes linear time for any
 * text.
 */
import type { Ajv } from 'ajv';
import addFormats from 'ajv-formats';

/** Asserted for inputs, only noted for outputs. */
export type FormatUse = 'asserted' | 'noted';

export function assertFormats(ajv: Ajv): void {
  addFormats.default(ajv);
  ajv.addFormat('url', isUrl); // the package's own format takes quadratic time
}

/** An absolute web address, as browsers parse it. */
function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/\S+$/i.test(text) && URL.canParse(text);
}
