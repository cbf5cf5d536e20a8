import { Fragment, type ReactElement } from 'react';
import { toPieces } from './name-pieces.ts';

/** A name that breaks at its separators, never inside a short word, whatever its column would do. */
export function Breakable({ name }: { readonly name: string }): ReactElement {
  return (
    <span className="wrap-normal break-normal">
      {toPieces(name).map((piece, index) => (
        // The pieces of one name never move.
        <Fragment key={`${index} ${piece}`}>
          {index === 0 ? null : <wbr />}
          {piece}
        </Fragment>
      ))}
    </span>
  );
}
