import pytest
import warm
from jupyter_client.provisioning import local_provisioner


@pytest.fixture(autouse=True)
def warm_kernels(monkeypatch):
    monkeypatch.setattr(local_provisioner, "launch_kernel", warm.launch)
