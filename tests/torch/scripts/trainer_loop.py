# SPDX-License-Identifier: Apache-2.0
"""A language model trained by the Trainer of transformers: gradients of two batches in each step, two loader workers."""
import sys

import torch
import transformers


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = (torch.arange(16) * (index + 3)) % 128
        return {"input_ids": tokens, "labels": tokens}


if __name__ == "__main__":
    shape = transformers.GPT2Config(vocab_size=128, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = transformers.TrainingArguments(
        output_dir=sys.argv[1], max_steps=20, per_device_train_batch_size=4, gradient_accumulation_steps=2, report_to=[],
        save_strategy="no", logging_steps=10, dataloader_num_workers=2)
    trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(shape), args=arguments, train_dataset=Tokens())
    trainer.remove_callback(transformers.trainer_callback.ProgressCallback)  # it prints how long things took
    trainer.train()
    print(trainer.state.global_step, "steps")
