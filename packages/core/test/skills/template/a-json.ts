import fc from 'fast-check';
import { anyText } from '../../../../../test/support/any-text.ts';
import type { Json } from '../../../src/contracts/primitives.ts';
import { isForbiddenName } from '../../../src/json/values.ts';

const key = fc.oneof(
  fc.constantFrom('a', 'b', '', 'a/b', '~', '~1', '0', '-', '$literal', '{{', 'in put'),
  anyText().filter((text) => !isForbiddenName(text)),
);
const scalar = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, 1, '', 'x', '5', '{{ input.a }}', '{{', '{{ x }}'),
  anyText(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** Any JSON whose keys pointers may hold; few different values, so that parts of two are often equal. */
export const anyJson: fc.Arbitrary<Json> = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc.array(tie('json'), { maxLength: 5 }),
    fc.dictionary(key, tie('json'), { maxKeys: 5 }),
  ),
})).json;
