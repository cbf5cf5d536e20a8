/**
 * What `format` means, wherever a schema is checked: by the router, by the SDK and by `capstan check`. It is asserted of
 * what goes into a capability, because a wrong value costs nothing there yet. Of what comes out it says what is meant and
 * is not asserted: the answer has been paid for, and an address with an umlaut is no reason to throw it away.
 * Every format takes linear time, however long the text is.
 */
import type { Ajv } from 'ajv';
import addFormats from 'ajv-formats';

/** Asserted of inputs, only noted of outputs. */
export type FormatUse = 'asserted' | 'noted';

export function assertFormats(ajv: Ajv): void {
  addFormats.default(ajv);
  ajv.addFormat('url', isUrl); // that of the package takes quadratic time
}

/** An absolute address of the web, as browsers read it. */
function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/\S+$/i.test(text) && URL.canParse(text);
}
