/**
 * The memory that bodies take while they are received: one budget for the process, and a share of it for each sender, a
 * key or, where none is known yet, an address. What is over it is refused, so that many slow bodies neither fill the
 * process nor keep others from sending theirs.
 */
import { createTally } from '../core/tally.ts';
import { AppError } from '../errors/app-error.ts';

/** Beside its bytes, what a piece takes by being one: a body that comes byte by byte holds a hundred times its length. */
const pieceBytes = 200;

export interface HeldBody {
  /** @returns null, or why the body has to be refused */
  take(bytes: number): AppError | null;
  /** The body has been parsed or refused. */
  release(): void;
}

export interface BodyBudget {
  open(sender: string): HeldBody;
  /** Of all senders. */
  readonly heldBytes: number;
}

export interface BodyBudgetLimits {
  readonly processBytes: number;
  readonly senderBytes: number;
}

function refuse(sender: string, { senderBytes }: BodyBudgetLimits): AppError {
  const message = `the bodies that ${sender} is sending hold more than the allowed ${senderBytes} bytes together; send fewer at once`;
  return new AppError('rate_limited', message, { retryAfterS: 1 });
}

function refuseAll({ processBytes }: BodyBudgetLimits): AppError {
  const message = `the bodies that this server receives hold ${processBytes} bytes, which is all that they may`;
  return new AppError('unavailable', message, { retryAfterS: 1 });
}

export function createBodyBudget(limits: BodyBudgetLimits): BodyBudget {
  const bySender = createTally();
  let all = 0;
  const add = (sender: string, bytes: number): void => {
    bySender.add(sender, bytes);
    all += bytes;
  };
  return {
    open: (sender) => {
      let taken = 0;
      return {
        take: (bytes) => {
          const wanted = bytes + pieceBytes;
          if (bySender.of(sender) + wanted > limits.senderBytes) return refuse(sender, limits);
          if (all + wanted > limits.processBytes) return refuseAll(limits);
          add(sender, wanted);
          taken += wanted;
          return null;
        },
        release: () => {
          add(sender, -taken);
          taken = 0;
        },
      };
    },
    get heldBytes() {
      return all;
    },
  };
}
