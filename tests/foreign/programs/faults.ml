(* SPDX-License-Identifier: Apache-2.0 *)
(* A stack that overflows, threads, children. *)
let rec descend n = 1 + descend (n + 1)

let () =
  (try ignore (descend 0) with Stack_overflow -> print_endline "overflow");
  let work i () =
    let sum = ref 0 in
    for k = 1 to 100_000 do
      sum := !sum + (k * i)
    done
  in
  List.iter Thread.join (List.init 8 (fun i -> Thread.create (work i) ()));
  flush_all ();
  (match Unix.fork () with
  | 0 -> exit 3
  | child -> (
      match Unix.waitpid [] child with
      | _, Unix.WEXITED code -> Printf.printf "%d\n" code
      | _ -> print_endline "killed"));
  Printf.printf "%d\n%!" (Sys.command "exit 5");
  exit 2
