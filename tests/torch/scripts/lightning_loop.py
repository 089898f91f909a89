# SPDX-License-Identifier: Apache-2.0
"""A training by Lightning: two epochs, gradients of two batches in each step, a validation after each epoch."""
import pytorch_lightning
import torch


class Net(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def loss(self, batch):
        inputs, targets = batch
        return torch.nn.functional.mse_loss(self.layers(inputs), targets)

    def training_step(self, batch, _):
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("validation", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


torch.manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(160, 32), torch.randn(160, 1))
trainer = pytorch_lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, accumulate_grad_batches=2, logger=False,
                                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=8), torch.utils.data.DataLoader(data, batch_size=40))
print(trainer.global_step, "steps")
