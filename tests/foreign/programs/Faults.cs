// SPDX-License-Identifier: Apache-2.0
// Null pointers, which Mono learns of by SIGSEGV, threads that its collector stops by signals, a child.
using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

class Faults {
    static void Main() {
        long sum = 0;
        Parallel.For(0, 100, i => {
            var kept = new byte[200][];
            for (int j = 0; j < kept.Length; ++j) kept[j] = new byte[10000];
            Interlocked.Add(ref sum, i);
        });
        Console.WriteLine(sum);
        int caught = 0;
        for (int i = 0; i < 1000; ++i) {
            try {
                string text = i % 2 == 0 ? null : "a";
                caught += text.Length - 1;
            } catch (NullReferenceException) {
                ++caught;
            }
        }
        Console.WriteLine(caught);
        for (int i = 0; i < 20; ++i) GC.Collect();
        var child = Process.Start(new ProcessStartInfo("sh", "-c \"exit 3\"") { UseShellExecute = false });
        child.WaitForExit();
        Console.WriteLine(child.ExitCode);
        Environment.Exit(5);
    }
}
