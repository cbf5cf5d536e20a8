/**
 * Sixty mistakes. Many are near misses of others: the same words, but another place, another form of value, or a value
 * whose cure is another one; and cures that look like a rule, or like a number in the error, by coincidence.
 */

import type { Kind } from './kind.ts';
import { adviceKinds } from './kinds-advice.ts';
import { ruleKinds } from './kinds-rule.ts';
import { valueKinds } from './kinds-value.ts';

export const kinds: readonly Kind[] = [...ruleKinds, ...valueKinds, ...adviceKinds];
