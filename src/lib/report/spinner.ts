// The spinner on a terminal's stderr. The library is loaded when it first turns; while it does, it lets other writes to
// the stream come out whole by itself.
import type { Ora } from 'ora';

/** Shows what is going on; undefined: nothing any more. */
export type Spinner = (what: string | undefined) => void;

/** Undefined where nobody watches. A terminal without a width (a serial line) would make the library wrap for ever. */
export function createSpinner(stream: NodeJS.WriteStream): Spinner | undefined {
  if (stream.isTTY !== true || !(stream.columns > 0)) return undefined;
  let ora: Ora | undefined;
  let requested = false;
  let wanted: string | undefined;
  const turn = (): void => {
    if (ora === undefined) return;
    if (wanted === undefined) ora.stop();
    else if (ora.isSpinning) ora.text = wanted;
    else ora.start(wanted);
  };
  const load = async (): Promise<void> => {
    ora = await loadOra(stream);
    turn();
  };
  return (what) => {
    wanted = what;
    if (what !== undefined && !requested) {
      requested = true;
      void load();
    }
    turn();
  };
}

/** Keys typed meanwhile belong to the shell, and SIGINT to main. */
async function loadOra(stream: NodeJS.WriteStream): Promise<Ora> {
  const { default: ora } = await import('ora');
  return ora({ stream, discardStdin: false, hideCursor: false });
}
